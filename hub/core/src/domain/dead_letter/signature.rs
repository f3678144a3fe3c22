//! What the failures of a group have in common, and the id of the group.
//!
//! Two failures belong together if their messages are the same but for names and numbers: `no customer 4711` and `no customer
//! 4712`. So whatever looks like a number, a generated name or a text in quotes is replaced by a word for it, and the rest stays.

use std::fmt;

use seawall_dist::deadletter::Attempt;
use serde_json::Value;

use super::super::delivery::DeadLetterReason;
use super::super::hash;
use super::super::slug::Slug;

/// The part of a response that is searched for an error message, in bytes.
const BODY_MAX: usize = 4_096;

/// The JSON fields that services put their error message in, in the order of preference.
const FIELDS: [&str; 8] =
    ["code", "type", "title", "error", "message", "detail", "error_description", "reason"];

/// The maximum length of an error message in characters.
const TEXT_MAX: usize = 500;

/// The number of messages that are told apart for otherwise equal failures. A service with a different message each time would
/// make as many groups as dead letters.
pub const MESSAGES_MAX: u32 = 100;

/// What the failures of a group have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureSignature {
    /// The service that received the request.
    pub service: Slug,
    /// The rule that made the delivery.
    pub rule: Slug,
    /// The reason of the dead letters.
    pub reason: DeadLetterReason,
    /// The status of the last response; `None` if there was none.
    pub status: Option<u16>,
    /// The error message without its variable parts; empty if there was none or there are too many different ones.
    pub message: String,
}

/// What is known of the failure of one dead letter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FailureSummary {
    /// The status of the last response; `None` if there was none.
    pub status: Option<u16>,
    /// The error message of the service, or of the hub if there is no response; `None` if there is neither.
    pub message: Option<String>,
}

impl FailureSummary {
    /// Summarises an attempt that failed: by the error message of the service, or else by what went wrong on the way to it.
    #[must_use]
    pub fn of_attempt(attempt: &Attempt) -> Self {
        let answer = attempt.answer.as_ref();
        let message = answer.and_then(|answer| error_message(&answer.body)).or_else(|| attempt.error.clone());
        FailureSummary {
            status: answer.map(|answer| answer.status),
            message: message.map(|message| message.chars().take(TEXT_MAX).collect()),
        }
    }
}

impl FailureSignature {
    /// Returns the signature of a dead letter, with the message normalised.
    #[must_use]
    pub fn new(service: Slug, rule: Slug, reason: DeadLetterReason, summary: &FailureSummary) -> Self {
        let message = normalised(summary.message.as_deref().unwrap_or_default());
        FailureSignature { service, rule, reason, status: summary.status, message }
    }

    /// Returns the signature under which a failure without a group is grouped, if `alike` groups differ from it in the message
    /// only. Beyond [`MESSAGES_MAX`] the rest is one group without a message.
    #[must_use]
    pub fn limited(self, alike: u32) -> Self {
        if alike < MESSAGES_MAX { self } else { FailureSignature { message: String::new(), ..self } }
    }
}

/// The id of a group, a hash of its failure signature. It is stable, because links and notes contain it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Hashes a failure signature.
    #[must_use]
    pub fn of(failure: &FailureSignature) -> Self {
        let FailureSignature { service, rule, reason, status, message } = failure;
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        let bytes = hash::parts([service.as_str(), rule.as_str(), reason.word(), &status, message]);
        Fingerprint(bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Parses the output of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("grp_")
            .filter(|hex| hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u64::from_str_radix(hex, 16).ok().map(Fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grp_{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The maximum length of a normalised message, in characters.
pub const MESSAGE_MAX: usize = 160;

/// Normalises a message: replaces the parts that differ each time.
#[must_use]
pub fn normalised(message: &str) -> String {
    let (mut out, mut rest) = (String::new(), message.trim());
    let mut length = 0;
    while let Some(first) = rest.chars().next() {
        if length >= MESSAGE_MAX {
            out.push('…');
            break;
        }
        let (taken, word) = next(first, rest);
        // One space for any number of them.
        if !(word == " " && out.ends_with(' ')) {
            length += word.chars().count();
            out.push_str(&word);
        }
        rest = &rest[taken..];
    }
    out.trim_end().to_owned()
}

/// Returns the length of the next piece in bytes, and its replacement.
fn next(first: char, rest: &str) -> (usize, String) {
    if first.is_whitespace() || first.is_control() {
        return (first.len_utf8(), " ".into());
    }
    if matches!(first, '"' | '\'' | '`')
        && let Some(end) = rest[1..].find(first)
        && !rest[1..=end].contains('\n')
    {
        return (end + 2, format!("{first}…{first}"));
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !is_part(first) {
        return (first.len_utf8(), first.to_string());
    }
    let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    (length, if is_given(word) { "#".into() } else { word.to_owned() })
}

/// Whether a word was probably generated by a machine: a number, or a long word of digits and letters.
fn is_given(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    digits > 0 && (digits * 2 >= word.len() || hex || word.len() >= 16 || word.contains(['-', '_']))
}

/// Finds the error message in a response: known fields of a JSON object, or the first line of a short text. An HTML page contains
/// nothing that tells failures apart.
fn error_message(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(&body[..body.len().min(BODY_MAX)]).ok()?.trim();
    if text.starts_with('<') || text.is_empty() {
        return None;
    }
    if !text.starts_with(['{', '[']) {
        return text.lines().next().map(ToOwned::to_owned);
    }
    let json: Value = serde_json::from_slice(body).ok()?;
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
    use proptest::prelude::*;

    use super::*;

    fn failure(service: &str, rule: &str, status: Option<u16>, message: &str) -> FailureSignature {
        FailureSignature {
            service: Slug::new(service).unwrap(),
            rule: Slug::new(rule).unwrap(),
            reason: DeadLetterReason::Refused,
            status,
            message: message.into(),
        }
    }

    /// HUB-6: the fingerprint changes with every part of a failure, is read back, and is the same tomorrow.
    #[test]
    fn hub_6_a_fingerprint_is_stable_and_tells_every_part() {
        let usual = failure("billing", "invoices", Some(422), "no customer #");
        let known = Fingerprint::of(&usual);
        assert_eq!(known.to_string(), "grp_0d4d16df37c8e19d");
        assert_eq!(Fingerprint::parse(&known.to_string()), Some(known));
        assert_eq!(Fingerprint::parse("grp_12"), None);
        let others = [
            failure("billin", "ginvoices", Some(422), "no customer #"),
            failure("billing", "invoices", Some(42), "2no customer #"),
            failure("billing", "invoices", None, "no customer #"),
            failure("billing", "invoices", Some(422), "no order #"),
            FailureSignature { reason: DeadLetterReason::Attempts, ..usual.clone() },
        ];
        for other in others {
            assert_ne!(Fingerprint::of(&other), known, "{other:?}");
        }
    }

    /// HUB-6, PRM-8: beyond a number of messages, the rest is one group without a message.
    #[test]
    fn hub_6_a_service_with_many_messages_has_a_limited_number_of_groups() {
        let usual = failure("billing", "invoices", Some(422), "no customer #");
        assert_eq!(usual.clone().limited(MESSAGES_MAX - 1), usual);
        let limited = usual.clone().limited(MESSAGES_MAX);
        assert_eq!(limited, FailureSignature { message: String::new(), ..usual });
    }

    /// HUB-6: names and numbers do not tell failures apart, words do.
    #[test]
    fn hub_6_messages_that_differ_in_names_and_numbers_are_alike() {
        for (one, other) in [
            ("no customer 4711", "no customer 12"),
            ("order A-7731 is closed", "order B-2 is closed"),
            ("unknown currency \"XYZ\"", "unknown currency \"ABC\""),
            (
                "job 1b4e28ba-2fa1-11d2-883f-0016d3cca427 not found",
                "job 6fa459ea-ee8a-3ca4-894e-db77e160355e not found",
            ),
            ("at 10.0.0.1:8080  refused", "at 10.0.0.27:9090 refused"),
            ("token deadbeef99 expired", "token 00ffa1 expired"),
            ("no field  `a`", "no field\n`b`"),
        ] {
            assert_eq!(normalised(one), normalised(other), "{one}");
        }
        assert_ne!(normalised("no customer 4711"), normalised("no order 4711"));
        assert_eq!(normalised("connection refused"), "connection refused");
        assert_eq!(normalised("utf8 or base64 or http2"), "utf8 or base64 or http2", "words with a digit");
        assert_eq!(normalised("it's broken"), "it's broken", "no end of the quote");
    }

    /// HUB-6: a peer's own word is taken from where peers put it.
    #[test]
    fn hub_6_the_word_of_a_peer_is_found_in_its_answer() {
        assert_eq!(error_message(br#"{"error":"no stock","id":7}"#).as_deref(), Some("no stock"));
        let nested = br#"{"error":{"code":"E12","message":"no stock"}}"#;
        assert_eq!(error_message(nested).as_deref(), Some("E12: no stock"));
        let problem = br#"{"type":"about:blank","title":"Bad","detail":"no stock","status":422}"#;
        assert_eq!(error_message(problem).as_deref(), Some("about:blank: Bad: no stock"));
        assert_eq!(error_message(b"no stock\nat line 7").as_deref(), Some("no stock"));
        for silent in [&b""[..], b"<html>no stock</html>", b"{}", b"[1]", b"{\"error\":", &[0xff, 0xfe]] {
            assert_eq!(error_message(silent), None, "{silent:?}");
        }
    }

    proptest! {
        /// HUB-6, PRM-8: whatever somebody says, it stays short, and once is enough.
        #[test]
        fn hub_6_any_message_stays_short(text in ".{0,400}") {
            let once = normalised(&text);
            prop_assert!(once.chars().count() <= MESSAGE_MAX * 2 + 1, "{} characters", once.chars().count());
        }
    }
}
