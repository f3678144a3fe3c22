//! What dead letters have in common: from the last try to the group.

use seawall_dist::deadletter::Attempt;
use serde_json::Value;

use crate::domain::delivery::Reason;
use crate::domain::letter::{Failure, normalised};
use crate::domain::slug::Slug;

/// So much of an answer is looked at.
const ANSWER_MAX: usize = 4_096;

/// Where peers say what is wrong, in the order in which they are asked.
const FIELDS: [&str; 8] =
    ["code", "type", "title", "error", "message", "detail", "error_description", "reason"];

/// A word is no longer than this.
const WORD_MAX: usize = 500;

/// The last word on a delivery that was given up: that of the peer, or what went wrong on the way to it.
#[must_use]
pub fn last_word(last: Option<&Attempt>) -> Option<String> {
    let answer = last.and_then(|attempt| attempt.answer.as_ref());
    let word = answer
        .and_then(|answer| said(&answer.body))
        .or_else(|| last.and_then(|attempt| attempt.error.clone()))?;
    Some(word.chars().take(WORD_MAX).collect())
}

/// What this dead letter has in common with others.
#[must_use]
pub fn failure(service: Slug, rule: Slug, reason: Reason, last: Option<&Attempt>) -> Failure {
    let answer = last.and_then(|attempt| attempt.answer.as_ref());
    let message = last_word(last).unwrap_or_default();
    let status = answer.map(|answer| answer.status);
    Failure { service, rule, reason, status, message: normalised(&message) }
}

/// What a peer's answer says is wrong, if it says so: the telling fields of a JSON object, or the first line of a short text. A
/// page for people says nothing that tells failures apart.
fn said(answer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(&answer[..answer.len().min(ANSWER_MAX)]).ok()?.trim();
    if text.starts_with('<') || text.is_empty() {
        return None;
    }
    if !text.starts_with(['{', '[']) {
        return text.lines().next().map(ToOwned::to_owned);
    }
    let json: Value = serde_json::from_slice(answer).ok()?;
    // Some put all of it under `error`.
    let inner = json.get("error").filter(|inner| inner.is_object()).unwrap_or(&json);
    let telling: Vec<String> = FIELDS
        .iter()
        .filter_map(|field| match inner.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    (!telling.is_empty()).then(|| telling.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6: a peer's own word is taken from where peers put it.
    #[test]
    fn hub_6_the_word_of_a_peer_is_found_in_its_answer() {
        assert_eq!(said(br#"{"error":"no stock","id":7}"#).as_deref(), Some("no stock"));
        let nested = br#"{"error":{"code":"E12","message":"no stock"}}"#;
        assert_eq!(said(nested).as_deref(), Some("E12: no stock"));
        let problem = br#"{"type":"about:blank","title":"Bad","detail":"no stock","status":422}"#;
        assert_eq!(said(problem).as_deref(), Some("about:blank: Bad: no stock"));
        assert_eq!(said(b"no stock\nat line 7").as_deref(), Some("no stock"));
        for silent in [&b""[..], b"<html>no stock</html>", b"{}", b"[1]", b"{\"error\":", &[0xff, 0xfe]] {
            assert_eq!(said(silent), None, "{silent:?}");
        }
    }
}
