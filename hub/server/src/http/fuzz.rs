//! What reads bytes from outside and is nobody else's business, for `cargo xtask fuzz`. In no build that does not ask for it.
#![expect(clippy::panic, reason = "a panic is how a fuzzer learns that something does not hold")]

use super::bridge::events;
use super::query;
use super::registry::rules::{self, RuleInput};

/// Reads an event as somebody has written it. Of one that is in order, its data, which is JSON.
#[must_use]
pub fn event(written: &[u8]) -> Option<String> {
    match events::read(written, true) {
        Ok(event) => Some(event.data.as_str().to_owned()),
        Err(unread) => {
            assert!(!unread.problems().is_empty(), "what is refused says why");
            None
        }
    }
}

/// Takes a page out of what stands after the question mark. Whether nothing else is there.
#[must_use]
pub fn query(text: &str) -> bool {
    let Ok(query) = query::read(Some(text)) else { return false };
    assert!((1..=500).contains(&query::page_of(&query).size), "a page is bounded");
    true
}

/// Reads a rule as somebody has written it. One that is in order can be written out and read again.
pub fn rule(written: &[u8]) {
    let Ok(value) = serde_json::from_slice(written) else { return };
    match rules::read(RuleInput::of(value)) {
        Ok(rule) => {
            let spec = rules::spec(&rule);
            match rules::read(RuleInput::of(serde_json::json!(spec))) {
                Ok(again) => assert_eq!(rules::spec(&again), spec, "it stays the same"),
                Err(problems) => panic!("{problems:?}: {spec:?}"),
            }
        }
        Err(problems) => assert!(!problems.is_empty(), "what is refused says why"),
    }
}
