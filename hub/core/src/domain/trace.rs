//! Which trace something belongs to.

use std::fmt;

/// The id of a trace, what all that follows from one request has in common; with it, whether whoever began it wants it told.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId {
    id: u128,
    sampled: bool,
}

impl TraceId {
    /// Of a `traceparent` in the form of W3C: `00-<32 digits>-…`.
    #[must_use]
    pub fn of(traceparent: &str) -> Option<Self> {
        let digits = traceparent.get(3..35)?;
        let is_one = traceparent.as_bytes()[2] == b'-' && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(digits, 16).ok().filter(|id| is_one && *id != 0)?;
        // The last bit of the flags; the others mean nothing yet.
        let flags = traceparent.get(53..55).and_then(|flags| u8::from_str_radix(flags, 16).ok());
        Some(TraceId { id, sampled: flags.is_some_and(|flags| flags & 1 == 1) })
    }

    /// Whether its spans are told to a collector. If not, it is passed on all the same.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.sampled
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.id)
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

    /// OBS-3: whether a trace is told is the last bit of its flags; flags that are none say no.
    #[test]
    fn obs_3_a_trace_says_whether_it_is_told() {
        for (flags, sampled) in
            [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true), ("", false)]
        {
            let trace = TraceId::of(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}"));
            assert_eq!(trace.unwrap().is_sampled(), sampled, "{flags}");
        }
    }
}
