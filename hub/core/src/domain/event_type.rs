//! Kinds of events, and patterns of them.

use std::fmt;

/// The type of an event, like `order.created`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventType(Box<str>);

/// The maximum length of an event type.
pub const EVENT_TYPE_MAX: usize = 255;

impl EventType {
    /// Checks an event type: words with dots between them.
    pub fn new(text: &str) -> Result<Self, EventTypeError> {
        check(text)?;
        Ok(EventType(text.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The event types that a rule applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Exactly one type, like `order.created`.
    Exactly(EventType),
    /// All types below one: `order.*` matches `order.created` and `order.item.added`, but not `order`.
    Below(EventType),
    /// All types, written `*`.
    Everything,
}

impl Pattern {
    /// Parses a pattern. A star stands alone or after the last dot.
    pub fn new(text: &str) -> Result<Self, EventTypeError> {
        if text == "*" {
            return Ok(Pattern::Everything);
        }
        match text.strip_suffix(".*") {
            Some(above) => EventType::new(above).map(Pattern::Below),
            None => EventType::new(text).map(Pattern::Exactly),
        }
    }

    /// Whether the pattern matches this type.
    #[must_use]
    pub fn matches(&self, kind: &str) -> bool {
        match self {
            Pattern::Everything => true,
            Pattern::Exactly(exact) => exact.as_str() == kind,
            Pattern::Below(above) => {
                kind.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Everything => f.write_str("*"),
            Pattern::Exactly(exact) => exact.fmt(f),
            Pattern::Below(above) => write!(f, "{above}.*"),
        }
    }
}

fn check(text: &str) -> Result<(), EventTypeError> {
    let reason = if text.is_empty() {
        "must not be empty"
    } else if text.len() > EVENT_TYPE_MAX {
        "must have at most 255 characters"
    } else if text.contains('*') {
        "a star must stand alone, or in a pattern after the last dot, as in `order.*`"
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        "must consist of visible ASCII characters"
    } else if text.split('.').any(str::is_empty) {
        "a dot must be between two words"
    } else {
        return Ok(());
    };
    Err(EventTypeError { text: text.chars().take(EVENT_TYPE_MAX).collect(), reason })
}

/// A text that is no event type or no pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventTypeError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for EventTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a valid event type: {}", self.text.escape_debug(), self.reason)
    }
}

impl std::error::Error for EventTypeError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-4: exact kinds, everything below one, everything.
    #[test]
    fn hub_4_patterns_match_what_they_say() {
        let matches = |pattern: &str, kind: &str| Pattern::new(pattern).unwrap().matches(kind);
        assert!(matches("order.created", "order.created"));
        assert!(!matches("order.created", "order.created.late"));
        assert!(matches("order.*", "order.created") && matches("order.*", "order.item.added"));
        assert!(!matches("order.*", "order") && !matches("order.*", "orders.created"));
        assert!(matches("*", "anything"));
        for text in ["order.created", "order.*", "*"] {
            assert_eq!(Pattern::new(text).unwrap().to_string(), text);
        }
    }

    /// HUB-4: what is no pattern is refused with the reason.
    #[test]
    fn hub_4_a_wrong_pattern_says_why() {
        for (bad, why) in [
            ("", "empty"),
            ("order.*.late", "star"),
            ("or*", "star"),
            ("order..created", "dot"),
            (".order", "dot"),
            ("order created", "visible"),
            (&*"x".repeat(256), "255"),
        ] {
            let error = Pattern::new(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
