//! The reference page, made from the table.

use std::fmt::Write;

use super::preset;
use super::schema::{CHOICES, Kind, PRESETS, Section, TABLE};
use super::value::listed;

/// Every setting that a guard has in a file, as a page in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration reference\n\n\
         Made by `cargo xtask reference` from the table in `libs/seawall/src/config/schema.rs`; a test fails when it is \
         stale. How files are put together is in [the guide](../libs/seawall/docs/configuration.md).\n\n\
         Each setting stands below a guard (`guards.<name>`) or a base (`configs.<name>`). `max_attempts`, `maxAttempts` \
         and `max-attempts` are the same key. A default in words follows from something else.\n",
    );
    let _ = writeln!(page, "\n## A guard\n\n{HEAD}");
    for key in TABLE.iter().filter(|key| key.parent().is_empty() && !matches!(key.kind, Kind::Section(_))) {
        row(&mut page, key.path, key);
    }
    for section in TABLE.iter().filter(|key| key.parent().is_empty() && matches!(key.kind, Kind::Section(_)))
    {
        let _ =
            writeln!(page, "\n## `{}`\n\n{} {}\n\n{HEAD}", section.path, section.doc, absent(section.kind));
        let below = format!("{}.", section.path);
        for key in TABLE.iter().filter(|key| key.path.starts_with(&below)) {
            row(&mut page, &key.path[below.len()..], key);
        }
    }
    choices(&mut page);
    presets(&mut page);
    page
}

const HEAD: &str = "| key | what | range | default | what it does |\n|---|---|---|---|---|";

fn row(page: &mut String, name: &str, key: &super::schema::Key) {
    let default = match key.default {
        "" => "—".into(),
        note if note.starts_with('(') => note.trim_matches(['(', ')']).to_owned(),
        value => format!("`{value}`"),
    };
    let _ = writeln!(page, "| `{name}` | {} | {} | {default} | {} |", what(key.kind), key.range, key.doc);
}

fn what(kind: Kind) -> String {
    match kind {
        Kind::Section(Section::On) => "section, or `none`".into(),
        Kind::Section(Section::Off) => "section; off".into(),
        Kind::Section(Section::Part) => "section".into(),
        Kind::Time => "duration".into(),
        Kind::TimeOrNone => "duration, or `none`".into(),
        Kind::Share => "share".into(),
        Kind::Count => "whole number".into(),
        Kind::Number => "number".into(),
        Kind::Switch => "`true`, `false`".into(),
        Kind::Word(words) => listed(words),
        Kind::Words(words) => format!("list of {}", listed(words)),
        Kind::Statuses => "statuses, or `none`".into(),
        Kind::Bases => "names".into(),
        Kind::Names => "list of names, or `none`".into(),
    }
}

fn absent(kind: Kind) -> &'static str {
    match kind {
        Kind::Section(Section::On) => "Where it is absent, the defaults hold.",
        _ => "Absent: off. Empty or `default`: on with the defaults. `none`: off, even if a base has it.",
    }
}

fn choices(page: &mut String) {
    page.push_str(
        "\n## What excludes each other\n\n\
         In one section it is a mistake to write both; in a guard one replaces the other of its base.\n\n\
         | one | other | why |\n|---|---|---|\n",
    );
    for choice in CHOICES {
        let side = |ways: &[super::schema::Way]| {
            let names = ways.iter().map(|way| match way.1 {
                [] => format!("`{}`", way.0),
                words => format!("`{}` of {}", way.0, listed(words)),
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(page, "| {} | {} | {} |", side(choice.ways[0]), side(choice.ways[1]), choice.why);
    }
}

fn presets(page: &mut String) {
    page.push_str("\n## Presets\n\n| preset | values |\n|---|---|\n");
    for name in PRESETS {
        let values = preset::values(name).iter().map(|(path, value)| format!("`{path}: {value}`"));
        let _ = writeln!(page, "| `{name}` | {} |", values.collect::<Vec<_>>().join(", "));
    }
}
