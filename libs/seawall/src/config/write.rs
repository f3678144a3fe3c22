//! Plans written out as a file.

use std::fmt::Write;

use super::Plan;
use super::value::Value;

/// Every setting in force, in our own words.
pub(super) fn yaml(plans: &[Plan]) -> String {
    let mut text = String::from(if plans.is_empty() { "guards: {}\n" } else { "guards:\n" });
    for plan in plans {
        let _ = writeln!(text, "  {}:", quoted(&plan.name));
        let mut open: Vec<&str> = Vec::new();
        for item in plan.settings.items().filter(|item| super::resolve::is_shown(item)) {
            // Presets are written out already, and bases are gone.
            if item.key.path == "preset" {
                continue;
            }
            let sections: Vec<&str> = item.key.path.split('.').collect();
            let Some((name, sections)) = sections.split_last() else { continue };
            let same = open.iter().zip(sections).take_while(|(a, b)| a == b).count();
            for (depth, section) in sections.iter().enumerate().skip(same) {
                let _ = writeln!(text, "{:indent$}{section}:", "", indent = 4 + 2 * depth);
            }
            open = sections.to_vec();
            let indent = 4 + 2 * sections.len();
            let _ = writeln!(text, "{:indent$}{name}: {}", "", shown(&item.value));
        }
    }
    text
}

fn shown(value: &Value) -> String {
    match value {
        // `429` alone would be a number, and a comma ends a value where it stands in brackets.
        Value::Statuses(statuses) => quoted(&statuses.to_string()),
        Value::Names(names) => {
            let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
            format!("[{}]", names.join(", "))
        }
        value => value.to_string(),
    }
}

/// Names that are plain words stay as they are; others are quoted as JSON does, which YAML reads too.
fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !matches!(text, "null" | "true" | "false");
    if plain {
        return text.into();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            // What YAML does not print, or takes for the end of a line.
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
