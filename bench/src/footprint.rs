//! Bytes per instance: what it is by itself, and what it keeps on the heap.

use crate::body::with_runtime;
use crate::op::Kind;
use crate::row::Rows;

/// How many calls an instance has made when its heap is measured the second time.
pub const CALLS: u64 = 1000;

/// The memory of one instance.
pub struct Footprint {
    pub name: String,
    /// `size_of` the value that the caller holds.
    pub inline_bytes: usize,
    /// Heap bytes alive once it is built.
    pub built_bytes: i64,
    /// Heap bytes alive after [`CALLS`] calls: some allocate on first use, some keep a record per call.
    pub used_bytes: i64,
}

impl Rows {
    /// Adds the footprint of what `make` builds; `call` makes one call on it.
    pub fn footprint<I, R>(
        &mut self,
        name: &str,
        make: impl Fn() -> I,
        call: impl AsyncFn(&mut I, Kind) -> R,
    ) {
        with_runtime(|runtime| {
            let _context = runtime.enter();
            let use_it = |instance: &mut I| {
                runtime.block_on(async {
                    for _ in 0..CALLS {
                        call(instance, Kind::Ready).await;
                    }
                });
            };
            // What a library sets up once per thread or process is not part of an instance.
            use_it(&mut make());

            let mut instance = None;
            let built = allocation_counter::measure(|| instance = Some(make()));
            let mut instance = instance.expect("measure runs what it is given");
            let used = allocation_counter::measure(|| use_it(&mut instance));
            self.footprints.push(Footprint {
                name: name.to_owned(),
                inline_bytes: size_of::<I>(),
                built_bytes: built.bytes_current,
                used_bytes: built.bytes_current + used.bytes_current,
            });
        });
    }
}
