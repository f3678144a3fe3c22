//! TOML to a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Content, Entry, Lines, Node};
use super::{Place, Problem};

pub(super) fn read(file: &Place, text: &str) -> Result<Node, Vec<Problem>> {
    let mut lines = Lines::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let place = file.at(1, 1);
        return Ok(Node { place, content: map(table.into_inner(), &mut lines) });
    }
    let problems = errors.iter().map(|error| {
        let place = lines.at(error.span().map_or(0, |span| span.start));
        // The reader below sees keys that stand twice only by name.
        if error.message().starts_with("duplicate key") {
            return Problem::new(&place, "", "this key stands here twice")
                .with_remedy("take one of them out");
        }
        let remedy = if error.message().contains("quoted") {
            "text and durations stand in quotes: `cooldown = \"30s\"`"
        } else {
            "look at this line and the one above it"
        };
        Problem::new(&place, "", format!("this is not TOML: {}", error.message())).with_remedy(remedy)
    });
    Err(problems.collect())
}

fn node(value: Spanned<DeValue<'_>>, lines: &mut Lines<'_>) -> Node {
    let place = lines.at(value.span().start);
    let plain = |text: String| Content::Scalar { text, quoted: false };
    let content = match value.into_inner() {
        DeValue::String(text) => Content::Scalar { text: text.into_owned(), quoted: true },
        DeValue::Integer(number) => plain(number.to_string()),
        DeValue::Float(number) => plain(number.to_string()),
        DeValue::Boolean(switch) => plain(switch.to_string()),
        DeValue::Datetime(time) => plain(time.to_string()),
        DeValue::Array(items) => Content::List(items.into_iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(table) => map(table, lines),
    };
    Node { place, content }
}

/// The table comes sorted by key; a report follows the file.
fn map(table: DeTable<'_>, lines: &mut Lines<'_>) -> Content {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let place = lines.at(key.span().start);
        Entry { key: key.into_inner().into_owned(), place, value: node(value, lines) }
    });
    Content::Map(entries.collect())
}
