//! Which trace something belongs to.

use std::fmt;

/// The id of a trace: what all that follows from one request has in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

impl TraceId {
    /// Of a `traceparent` in the form of W3C: `00-<32 digits>-…`.
    #[must_use]
    pub fn of(traceparent: &str) -> Option<Self> {
        let digits = traceparent.get(3..35)?;
        let is_one = traceparent.as_bytes()[2] == b'-' && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(digits, 16).ok().filter(|id| is_one && *id != 0).map(TraceId)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-1: the trace id of an event is read from its trace; what is none is none.
    #[test]
    fn obs_1_a_trace_id_is_read_from_the_trace() {
        let id = TraceId::of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(id.to_string(), "0af7651916cd43dd8448eb211c80319c");
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for wrong in
            ["", "00-0af7", &zeros, "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-ä"]
        {
            assert_eq!(TraceId::of(wrong), None, "{wrong}");
        }
    }
}
