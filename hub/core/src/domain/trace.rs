//! Which trace something belongs to.

use std::fmt;

/// The bit of the flags that asks for the trace to be sampled; the others mean nothing yet.
const SAMPLED: u8 = 1;

/// The id of a trace and whether its originator wants it sampled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId {
    id: u128,
    sampled: bool,
}

impl TraceId {
    /// Reads the trace of a W3C `traceparent`.
    #[must_use]
    pub fn of(traceparent: &str) -> Option<Self> {
        TraceParent::parse(traceparent).map(|parent| parent.trace)
    }

    /// Creates the id of a trace that begins here. Its spans are exported.
    #[must_use]
    pub fn fresh(id: u128) -> Self {
        TraceId { id, sampled: true }
    }

    /// Returns a W3C `traceparent` for what begins in this trace.
    #[must_use]
    pub fn traceparent(self) -> String {
        format!("00-{self}-{:016x}-01", self.id & u128::from(u64::MAX))
    }

    /// Whether its spans are exported. If not, the trace is passed on all the same.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.sampled
    }
}

/// A W3C `traceparent`: a span within a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent {
    pub trace: TraceId,
    /// The id of the span, which is not zero.
    pub span: u64,
    /// The flags as they came, of which only the last bit has a meaning.
    pub flags: u8,
}

impl TraceParent {
    /// The span of an attempt in the trace of its event.
    #[must_use]
    pub fn within(trace: TraceId, span: u64) -> Self {
        TraceParent { trace, span, flags: u8::from(trace.sampled) }
    }

    /// Parses `00-<32 digits>-<16 digits>-<2 digits>` with small digits, neither id all zeros.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let dashes = [2, 35, 52];
        let is_well_formed = text.len() == 55
            && text.starts_with("00-")
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| if dashes.contains(&at) { byte == b'-' } else { is_digit(&byte) });
        if !is_well_formed {
            return None;
        }
        let id = u128::from_str_radix(&text[3..35], 16).ok().filter(|id| *id != 0)?;
        let span = u64::from_str_radix(&text[36..52], 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(&text[53..], 16).ok()?;
        Some(TraceParent { trace: TraceId { id, sampled: flags & SAMPLED != 0 }, span, flags })
    }

    /// Whether its spans are exported.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.trace.sampled
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{:016x}-{:02x}", self.trace, self.span, self.flags)
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

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// OBS-1, OBS-3: a place in a trace is read and written as W3C has it.
    #[test]
    fn obs_1_a_place_in_a_trace_is_read_and_written() {
        let parent = TraceParent::parse(TEXT).unwrap();
        assert_eq!(parent.to_string(), TEXT);
        assert_eq!(TraceId::of(TEXT).unwrap().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(
            TraceParent::within(parent.trace, 7).to_string(),
            format!("{}0000000000000007-01", &TEXT[..36])
        );
    }

    /// OBS-1: what is no trace is none.
    #[test]
    fn obs_1_a_malformed_trace_is_none() {
        let zeros =
            |from: usize, to: usize| format!("{}{}{}", &TEXT[..from], "0".repeat(to - from), &TEXT[to..]);
        let (trace, span) = (zeros(3, 35), zeros(36, 52));
        let (upper, longer, dash) = (TEXT.replace('a', "A"), format!("{TEXT}-"), TEXT.replacen('-', "+", 1));
        let (version, letter, sign) =
            (TEXT.replace("00-0", "01-0"), TEXT.replace("-01", "-ä"), TEXT.replace("0af", "+af"));
        for wrong in ["", "00-0af7", &trace, &span, &upper, &longer, &dash, &version, &letter, &sign] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }

    /// OBS-3: the last bit of the flags says whether a trace is sampled, and all flags are passed on.
    #[test]
    fn obs_3_a_trace_says_whether_it_is_sampled() {
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true)] {
            let text = TEXT.replace("-01", &format!("-{flags}"));
            let parent = TraceParent::parse(&text).unwrap();
            assert_eq!((parent.is_sampled(), parent.to_string()), (sampled, text));
        }
    }
}
