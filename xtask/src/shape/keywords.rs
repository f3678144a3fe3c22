//! The keywords that our schemas have beside those of JSON Schema are on a page, and the page has no others.

use std::collections::BTreeSet;

use super::{File, expect_none, files};

/// The schemas.
const TYPES: &str = "libs/seawall-api/src/";
/// The page of the keywords, each at the start of a row.
const PAGE: &str = "docs/dev/schema-keywords.md";

/// The names of keywords in a source, and those of the keys of `x-form`.
fn keywords(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in source.match_indices("\"x-") {
        let Some((name, rest)) = source[at + 1..].split_once('"') else { continue };
        let Some(value) = rest.strip_prefix(" = ") else { continue };
        found.insert(name.to_owned());
        if name == "x-form" {
            found.extend(keys(value));
        }
    }
    found
}

/// The keys of the object that a text begins with, without those of objects inside of it.
fn keys(text: &str) -> BTreeSet<String> {
    let (mut found, mut depth, mut rest) = (BTreeSet::new(), 0_usize, text);
    while let Some(first) = rest.chars().next() {
        let raw = rest.strip_prefix("r#\"").and_then(|inner| inner.split_once("\"#"));
        if let Some((_, after)) = raw {
            rest = after;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '{' => depth += 1,
            '}' if depth == 1 => return found,
            '}' => depth -= 1,
            '"' => {
                let Some((word, after)) = rest.split_once('"') else { return found };
                if depth == 1 && after.starts_with(':') {
                    found.insert(word.to_owned());
                }
                rest = after;
            }
            _ => {}
        }
    }
    found
}

/// The words in the first column of the tables of a page.
fn listed(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(word, _)| word.to_owned()).collect()
}

fn problems(files: &[File]) -> Vec<String> {
    let used: BTreeSet<String> = files
        .iter()
        .filter(|file| file.path.starts_with(TYPES))
        .flat_map(|file| keywords(&file.text))
        .collect();
    let listed =
        files.iter().find(|file| file.path == PAGE).map(|page| listed(&page.text)).unwrap_or_default();
    let missing = used.difference(&listed).map(|word| format!("`{word}` has no row in {PAGE}"));
    let unused =
        listed.difference(&used).map(|word| format!("{PAGE} has a row for `{word}`, which no schema uses"));
    missing.chain(unused).collect()
}

/// API-4
#[test]
fn every_keyword_of_our_schemas_is_on_its_page() {
    expect_none(&problems(&files()));
}

#[test]
fn a_keyword_without_a_row_and_a_row_without_a_keyword_are_found() {
    let source = r##"extend("x-new" = true, "x-form" = {"label": "{a}", "labels": {"inner": "x"}, "place": r#"{"b": 1}"#})"##;
    let page = "| `x-form` | y |\n| `labels` | `z` |\n| `old` | |\n";
    let files = [File::made_up("libs/seawall-api/src/a.rs", source), File::made_up(PAGE, page)];
    let expected = [
        format!("`label` has no row in {PAGE}"),
        format!("`place` has no row in {PAGE}"),
        format!("`x-new` has no row in {PAGE}"),
        format!("{PAGE} has a row for `old`, which no schema uses"),
    ];
    assert_eq!(problems(&files), expected);
}
