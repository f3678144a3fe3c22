//! Entries of a journal as lines: how journals are recorded and replayed in tests.

use std::fmt;
use std::str::FromStr;

use super::journal::{EntryKind, JournalEntry};
use crate::Millis;

/// The entry as one line of a recorded journal: kind, step, attempt, payload in hexadecimal, text. A dash stands for nothing;
/// whatever is not plain ASCII text is escaped as Rust escapes it.
///
/// The time is left out, so that recorded journals can be compared.
impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = if self.step.is_empty() { "-".to_owned() } else { word(&self.step) };
        let payload: String = self.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let payload = if payload.is_empty() { "-" } else { &payload };
        let text = match self.text.as_deref() {
            None => "-".to_owned(),
            // A quotation mark of the text itself is escaped, so that nothing else reads like this.
            Some("") => "\"\"".to_owned(),
            Some("-") => word("-"),
            Some(text) => text.escape_default().to_string(),
        };
        write!(f, "{} {step} {} {payload} {text}", self.kind, self.attempt)
    }
}

/// Escapes text that has to be one word, and no dash.
fn word(text: &str) -> String {
    if text == "-" { r"\u{2d}".to_owned() } else { text.escape_default().to_string().replace(' ', r"\u{20}") }
}

/// Undoes `str::escape_default`. What has no escapes is left as it is.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let (character, left) = match after.strip_prefix("u{") {
            Some(code) => {
                let (digits, left) = code.split_once('}')?;
                (char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, left)
            }
            None => {
                let mut characters = after.chars();
                let character = match characters.next()? {
                    't' => '\t',
                    'r' => '\r',
                    'n' => '\n',
                    same @ ('\'' | '"' | '\\') => same,
                    _ => return None,
                };
                (character, characters.as_str())
            }
        };
        plain.push(character);
        rest = left;
    }
    plain.push_str(rest);
    Some(plain)
}

/// A line is not an entry of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalLineError {
    line: String,
}

impl fmt::Display for JournalLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an entry of a journal: write kind, step, attempt, payload in hexadecimal, text",
            self.line
        )
    }
}

impl std::error::Error for JournalLineError {}

impl FromStr for JournalEntry {
    type Err = JournalLineError;

    fn from_str(line: &str) -> Result<Self, JournalLineError> {
        let parse = || {
            let mut words = line.splitn(5, ' ');
            let kind = EntryKind::of_name(words.next()?)?;
            let (step, attempt) = (words.next()?, words.next()?.parse().ok()?);
            let (payload, text) = (words.next()?, words.next()?);
            Some(JournalEntry {
                kind,
                step: if step == "-" { String::new() } else { unescape(step)? },
                attempt,
                payload: if payload == "-" { Vec::new() } else { bytes_of(payload)? },
                text: match text {
                    "-" => None,
                    "\"\"" => Some(String::new()),
                    text => Some(unescape(text)?),
                },
                at: Millis(0),
            })
        };
        parse().ok_or_else(|| JournalLineError { line: line.to_owned() })
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || hex.len() % 2 == 1 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    hex.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saga::journal::KINDS;

    #[test]
    fn entries_are_read_as_they_were_written() {
        for entry in [
            JournalEntry::of_step(EntryKind::StepIntent, "debit", 2),
            JournalEntry::of_step(EntryKind::StepDone, "debit", 2).with_payload(vec![0, 255, 16]),
            JournalEntry::new(EntryKind::NeedsAttention).with_text("the peer said no"),
        ] {
            assert_eq!(entry.to_string().parse::<JournalEntry>(), Ok(entry));
        }
        for wrong in [
            "",
            "step_intent",
            "nothing debit 1 - -",
            "step_done debit 1 0g -",
            "step_done debit x - -",
            "step_done debit 1 é -",
        ] {
            assert!(wrong.parse::<JournalEntry>().is_err(), "{wrong}");
        }
    }

    /// CRD-5: whatever an error or a note says, a recorded journal has it as it was.
    #[test]
    fn crd_5_hostile_text_is_read_as_it_was_written() {
        for text in [
            "",
            "-",
            "--",
            " ",
            " - ",
            "a  b ",
            "\"\"",
            "\"",
            "'",
            "\\",
            "\\n",
            "\\u{2d}",
            "\u{2d}",
            "\n",
            "\r\n",
            "\t",
            "\0",
            "no such account: caf\u{e9} \u{1f980} \u{202e}",
            "step_done debit 1 - -",
        ] {
            let entry = JournalEntry::of_step(EntryKind::StepFailed, "debit", 1).with_text(text);
            let line = entry.to_string();
            assert!(!line.contains(['\n', '\r']), "an entry is not one line: {line:?}");
            assert_eq!(line.parse::<JournalEntry>(), Ok(entry), "{line}");
        }
        for step in ["-", "caf\u{e9}", "a b", "\\", "\n"] {
            let entry = JournalEntry::of_step(EntryKind::StepIntent, step, 1);
            assert_eq!(entry.to_string().parse::<JournalEntry>(), Ok(entry));
        }
        for wrong in [
            "step_done debit 1 - a\\",
            "step_done debit 1 - \\x",
            "step_done debit 1 - \\u{d800}",
            "step_done debit 1 +f -",
        ] {
            assert!(wrong.parse::<JournalEntry>().is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        /// CRD-5: every entry reads as it was written.
        #[test]
        fn crd_5_every_entry_is_read_as_it_was_written(
            kind in proptest::sample::select(KINDS.map(|(kind, _)| kind).to_vec()),
            step in "\\PC{0,12}|[-\"\\\\ ]{0,3}",
            attempt: u32,
            payload: Vec<u8>,
            text: Option<String>,
        ) {
            let entry = JournalEntry { kind, step, attempt, payload, text, at: Millis(0) };
            let line = entry.to_string();
            proptest::prop_assert!(!line.contains(['\n', '\r']));
            proptest::prop_assert_eq!(line.parse::<JournalEntry>(), Ok(entry));
        }
    }
}
