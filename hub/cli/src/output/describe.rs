//! One thing, field by field.

use serde_json::{Map, Value};

use super::text::inline;

/// The fields of an object, those named in `first` before the others.
pub(super) fn lines(value: &Value, first: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    match value {
        Value::Object(map) => fields(map, first, 0, &mut lines),
        other => lines.push(inline(other)),
    }
    lines
}

fn fields(map: &Map<String, Value>, first: &[&str], depth: usize, lines: &mut Vec<String>) {
    let width = map.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let named = first.iter().filter_map(|name| map.get_key_value(*name));
    let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    let indent = "  ".repeat(depth);
    for (name, value) in named.chain(others) {
        let name = inline(&Value::from(name.as_str()));
        match value {
            Value::Object(below) if !below.is_empty() => {
                lines.push(format!("{indent}{name}"));
                fields(below, &[], depth + 1, lines);
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                lines.push(format!("{indent}{name}"));
                lines.extend(items.iter().map(|item| format!("{indent}  - {}", inline(item))));
            }
            Value::Object(_) => lines.push(format!("{indent}{name:width$}  -")),
            value => lines.push(format!("{indent}{name:width$}  {}", inline(value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// HUB-10: one thing is shown field by field, what matters first.
    #[test]
    fn hub_10_a_thing_is_shown_field_by_field() {
        let thing = json!({
            "version": 3, "name": "billing", "headers": {}, "auth": null, "policy": {"retry": {"max": 3}, "x": [1, 2]},
            "moves": [{"at": "now"}],
        });
        let expected = [
            "name     billing",
            "auth     -",
            "headers  -",
            "moves",
            "  - {\"at\":\"now\"}",
            "policy",
            "  retry",
            "    max  3",
            "  x      1, 2",
            "version  3",
        ];
        assert_eq!(lines(&thing, &["name"]), expected);
    }
}
