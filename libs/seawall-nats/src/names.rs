//! The names of streams and consumers, and of what the adapter declares beside them.

/// Checks the name of a stream or of a consumer.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let is_wrong = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>' | '/' | '\\');
    if name.is_empty() {
        return Err("is empty".to_owned());
    }
    if name.contains(is_wrong) {
        return Err(format!(
            "`{}` has a space, a dot, a wildcard or a separator of paths in it; use letters, digits, `-` and `_`",
            name.escape_debug()
        ));
    }
    Ok(())
}

/// The stream with the dead letters of a stream.
pub(crate) fn dead_letter_stream(stream: &str) -> String {
    format!("{stream}-dlq")
}

/// The subject of the dead letters of one consumer.
pub(crate) fn dead_letter_subject(stream: &str, consumer: &str) -> String {
    format!("dlq.{stream}.{consumer}")
}

/// The stream that captures what JetStream says about messages that are not delivered again.
pub(crate) fn advisory_stream(stream: &str) -> String {
    format!("{stream}-advisories")
}

/// The subjects of those advisories: too many deliveries, and terminated by a consumer.
pub(crate) fn advisory_subjects(stream: &str) -> [String; 2] {
    ["MAX_DELIVERIES", "MSG_TERMINATED"].map(|kind| format!("$JS.EVENT.ADVISORY.CONSUMER.{kind}.{stream}.>"))
}

/// Whether a stream with this subject, which may have wildcards, takes all messages of another one.
pub(crate) fn covers(pattern: &str, subject: &str) -> bool {
    let (mut patterns, mut tokens) = (pattern.split('.'), subject.split('.'));
    loop {
        match (patterns.next(), tokens.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(pattern), Some(token)) if pattern == token => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_covers_what_its_wildcards_say() {
        for (pattern, subject, expected) in [
            ("orders.>", "orders.created", true),
            ("orders.>", "orders.created.eu", true),
            ("orders.>", "orders", false),
            ("orders.*", "orders.created", true),
            ("orders.*", "orders.>", false),
            ("orders.*", "orders.*", true),
            ("orders.created", "orders.*", false),
            ("orders.created", "orders.created", true),
            ("orders", "orders.created", false),
        ] {
            assert_eq!(covers(pattern, subject), expected, "{pattern} {subject}");
        }
    }

    #[test]
    fn names_are_checked() {
        assert!(check("ORDERS-eu_1").is_ok());
        for wrong in ["", "a.b", "a b", "a*", "a>", "a/b", "a\\b", "a\nb"] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }
}
