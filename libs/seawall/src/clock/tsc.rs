//! The processor's own counter of cycles, as nanoseconds.

use std::sync::OnceLock;

/// The counter and how fast it runs. One for the whole process, so that a clock that has it is no larger and a clone of it
/// is a copy of a pointer.
#[derive(Clone, Copy)]
pub(super) struct Counter(&'static Calibrated);

struct Calibrated {
    clock: quanta::Clock,
    /// Nanoseconds in 2³² steps of the counter: a number that is right to a part in a billion, and a scale that is one
    /// multiplication and a shift known to the compiler.
    scale: u64,
}

const SCALE_BITS: u32 = 32;

impl Counter {
    /// Measures how fast the counter runs, the first time. None if it is half-way to the end of what a [stopwatch]
    /// promises, as firmware may leave it: that is eighteen years, and nobody would know why a limit goes wrong then.
    ///
    /// [stopwatch]: super::Clock::stopwatch
    pub(super) fn calibrated() -> Option<Self> {
        static CALIBRATED: OnceLock<Calibrated> = OnceLock::new();
        let counter = Counter(CALIBRATED.get_or_init(|| {
            let clock = quanta::Clock::new();
            let scale = clock.delta_as_nanos(0, 1 << SCALE_BITS);
            Calibrated { clock, scale }
        }));
        (counter.nanos() < 1 << 59).then_some(counter)
    }

    /// Since some time before the process began. Two threads that read it at the same moment may be out of order by the
    /// few nanoseconds by which a processor reads it ahead of what stands before it in the program.
    #[inline]
    pub(super) fn nanos(self) -> u64 {
        let Calibrated { clock, scale } = self.0;
        ((u128::from(clock.raw()) * u128::from(*scale)) >> SCALE_BITS) as u64
    }
}
