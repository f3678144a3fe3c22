//! Values as people read them.

use serde_json::Value;

/// A text with spaces in it is cut here. What has none may be an id that somebody copies, and stays whole.
const TEXT_MAX: usize = 60;

/// A text without what a terminal would obey. Names, errors and answers of others are in it.
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

/// A value in a table.
pub(crate) fn cell(value: &Value) -> String {
    let text = inline(value);
    if text.chars().count() <= TEXT_MAX || !text.contains(' ') {
        return text;
    }
    text.chars().take(TEXT_MAX - 1).chain(['…']).collect()
}

/// What stands at `a.b` in a value.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(value, |value, part| &value[part])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(cell(&json!(id)), id);
        assert_eq!(cell(&json!("word ".repeat(50))).chars().count(), TEXT_MAX);
        assert_eq!(cell(&json!([1, "a", null])), "1, a, -");
        assert_eq!(cell(&json!({"a": [true]})), r#"{"a":[true]}"#);
        assert_eq!(cell(at(&json!({"a": {"b": 1}}), "a.c")), "-");
    }
}
