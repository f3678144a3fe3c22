//! Values as text for people.

use serde_json::Value;

/// The maximum length of a text with spaces. A text without spaces may be an id to copy and stays whole.
const TEXT_MAX: usize = 60;

/// Escapes control characters, which names, errors and responses from outside may hold.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: char| match c {
        '\t' => " ".to_owned(),
        // Marks that turn text around, or hide it, are no better than escapes.
        '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => c.escape_unicode().to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(harmless).collect()
}

/// A value within a line.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) if text.is_empty() => "-".into(),
        Value::String(text) => plain(text),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(inline).collect::<Vec<_>>().join(", ")
        }
        other => plain(&other.to_string()),
    }
}

/// A value that fits into a line.
pub(crate) trait CellText {
    fn text(&self) -> String;
}

/// A value in a table or a sentence.
pub(crate) fn cell(value: &(impl CellText + ?Sized)) -> String {
    let text = value.text();
    if text.chars().count() <= TEXT_MAX || !text.contains(' ') {
        return text;
    }
    text.chars().take(TEXT_MAX - 1).chain(['…']).collect()
}

impl CellText for str {
    fn text(&self) -> String {
        if self.is_empty() { "-".into() } else { plain(self) }
    }
}

impl CellText for String {
    fn text(&self) -> String {
        self.as_str().text()
    }
}

impl CellText for bool {
    fn text(&self) -> String {
        if *self { "yes".into() } else { "no".into() }
    }
}

impl<T: CellText> CellText for Option<T> {
    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "-".into(), CellText::text)
    }
}

impl<T: CellText> CellText for Vec<T> {
    fn text(&self) -> String {
        if self.is_empty() {
            "-".into()
        } else {
            self.iter().map(CellText::text).collect::<Vec<_>>().join(", ")
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl CellText for $number {
            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

/// Words and texts of the API.
macro_rules! texts {
    ($($text:ident),* $(,)?) => {$(
        impl CellText for seawall_client::api::$text {
            fn text(&self) -> String {
                self.as_str().text()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);
texts!(
    AlertState,
    BaseUrl,
    BulkTask,
    CircuitState,
    ConditionKind,
    DeadLetterReason,
    DeliveryId,
    DeliveryState,
    DurationText,
    EventPattern,
    EventType,
    Fingerprint,
    GroupState,
    LetterState,
    Name,
    NotificationKind,
    NotificationState,
    OperationId,
    OperationState,
    Scope,
    Severity,
    Template,
    Timestamp,
    WaitReason,
);

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: what others have written can't give orders to a terminal.
    #[test]
    fn hub_10_a_terminal_obeys_nobody_else() {
        assert_eq!(plain("a\u{1b}[2Jb\u{7}\r\nc\td\u{9b}31m"), "a\\u{1b}[2Jb\\u{7}\\r\\nc d\\u{9b}31m");
        assert_eq!(plain("evil\u{202e}txt.exe"), "evil\\u{202e}txt.exe");
        assert_eq!(plain("a\u{61c}b\u{feff}\u{2028}\u{e0041}"), "a\\u{61c}b\\u{feff}\\u{2028}\\u{e0041}");
        assert_eq!(plain("Grüße, 世界"), "Grüße, 世界");
    }

    /// HUB-10: ids stay whole, texts are cut.
    #[test]
    fn hub_10_what_may_be_copied_stays_whole() {
        let id = "x".repeat(200);
        assert_eq!(cell(&id), id);
        assert_eq!(cell(&"word ".repeat(50)).chars().count(), TEXT_MAX);
        assert_eq!(cell(&vec![Some("1".to_owned()), None]), "1, -");
        assert_eq!((cell(""), cell(&true), cell(&None::<u64>)), ("-".into(), "yes".into(), "-".into()));
    }
}
