//! The header that carries a trace from process to process.

/// The trace id in a W3C `traceparent`, if it is one.
///
/// ```
/// let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// assert_eq!(seawall::telemetry::trace_id_of(header), Some("0af7651916cd43dd8448eb211c80319c"));
/// ```
#[must_use]
pub fn trace_id_of(traceparent: &str) -> Option<&str> {
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = traceparent.trim().split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let has_form = version.len() == 2 && trace.len() == 32 && parent.len() == 16 && flags.len() == 2;
    let is_known = version != "ff" && (version != "00" || parts.next().is_none());
    let is_hex = [version, trace, parent, flags].into_iter().all(is_hex);
    (has_form && is_known && is_hex && trace.bytes().any(|byte| byte != b'0')).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-1: a `traceparent` that is none has no trace.
    #[test]
    fn obs_1_the_trace_id_of_a_traceparent_is_its_second_part() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let of = |version: &str, rest: &str| format!("{version}-{id}-{rest}");
        assert_eq!(trace_id_of(&of("00", "b7ad6b7169203331-01")), Some(id));
        assert_eq!(trace_id_of(&of("01", "b7ad6b7169203331-01-more")), Some(id), "of a later version");
        for wrong in [
            of("00", "b7ad6b7169203331-01-more"),
            of("ff", "b7ad6b7169203331-01"),
            of("00", "b7ad6b7169203331"),
            of("00", "B7AD6B7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            "a span\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(trace_id_of(&wrong), None, "{wrong}");
        }
    }
}
