//! Which trace a line belongs to.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tracing::field::{DisplayValue, display};

/// The longest trace id that is written: twice the 32 digits of W3C.
const TRACE_ID_MAX: usize = 64;

/// Where the lines of a log find the trace id of the call that they are about.
#[derive(Clone, Default)]
pub(super) struct TraceIdSource(Option<Arc<dyn Fn() -> Option<String> + Send + Sync>>);

impl TraceIdSource {
    pub(super) fn function(find: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        TraceIdSource(Some(Arc::new(find)))
    }

    /// The id as it stands in a line. Lines are written while the caller polls or drops its call, so the current span is
    /// the caller's.
    pub(super) fn field(&self) -> Option<DisplayValue<String>> {
        // The line may be written by a call that a panic drops: a second panic would end the process.
        let given = self.0.as_ref().and_then(|find| catch_unwind(AssertUnwindSafe(|| find())).ok().flatten());
        given.and_then(plain).map(display).or_else(current_trace_id)
    }
}

impl fmt::Debug for TraceIdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "function" } else { "spans" })
    }
}

/// The trace id of the current span as it stands in a line, for lines that belong to no guard.
///
/// It is that of the nearest span with a field `traceId`, as far as the feature `tracing-subscriber` and
/// [`TraceIdLayer`](super::TraceIdLayer) are there to read it.
#[cfg(feature = "tracing-subscriber")]
#[must_use]
pub fn current_trace_id() -> Option<DisplayValue<String>> {
    super::trace_layer::current().map(display)
}

/// The trace id of the current span as it stands in a line. Without the feature `tracing-subscriber` there is none, because
/// nobody can read the fields of a span.
#[cfg(not(feature = "tracing-subscriber"))]
#[must_use]
pub fn current_trace_id() -> Option<DisplayValue<String>> {
    None::<String>.map(display)
}

/// An id that can't be taken for anything else in a line.
pub(super) fn plain(id: String) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    ((1..=TRACE_ID_MAX).contains(&id.len()) && id.bytes().all(plain)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-1: an id from outside can't forge a line or a field.
    #[test]
    fn obs_1_an_id_that_is_not_one_word_is_left_out() {
        for wrong in ["", "a b", "a\nb", "a=b", "\u{1b}[31m", &"a".repeat(65)] {
            assert_eq!(plain(wrong.to_owned()), None, "{wrong:?}");
        }
        assert_eq!(
            plain("1-5759e988-bd862e3fe1be46a9".to_owned()).as_deref(),
            Some("1-5759e988-bd862e3fe1be46a9")
        );
    }
}
