//! What the hub writes to its log, against the page that lists it and the mapping that types it.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use super::logs::lines_of;
use super::{File, files, read};

/// The names of the parts of a line: in JSON a field of this name would take their place.
const PARTS: [&str; 5] = ["time", "level", "module", "operation", "status"];

/// The lines in the sources of the hub, `[Module][Operation] Status.`, with the fields that each has somewhere.
fn written(sources: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let macros = Regex::new(r#"(?s)\b(?:error|warn|info|debug)!\(\s*target: [^,]*,(.*?)"(\[[A-Z][^"]*)""#);
    let (macros, mut lines) = (macros.expect("it is one"), BTreeMap::<String, BTreeSet<String>>::new());
    let field = Regex::new(r"^[%?]?([A-Za-z][A-Za-z0-9]*)").expect("it is one");
    for file in sources {
        let text = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for found in macros.captures_iter(text) {
            let fields = outside_brackets(&found[1]);
            let names = fields.split(',').filter_map(|part| Some(field.captures(part.trim())?[1].to_owned()));
            lines.entry(found[2].to_owned()).or_default().extend(names);
        }
    }
    lines
}

/// A text without what stands in brackets of any kind.
fn outside_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// What page, mapping and sources do not agree on.
fn problems(sources: &[File], page: &str, mapping: &Value) -> Vec<String> {
    let lines = written(sources);
    let named: BTreeSet<String> = lines_of(page)
        .into_iter()
        .map(|[_, module, operation, status]| format!("[{module}][{operation}] {status}"))
        .collect();
    let mut problems = Vec::new();
    for (line, fields) in &lines {
        if !named.contains(line) {
            problems.push(format!("`{line}` is not on the page"));
        }
        for field in fields {
            if PARTS.contains(&field.as_str()) {
                problems.push(format!("`{line}` has a field `{field}`, which is a part of the line in JSON"));
            } else if mapping["template"]["mappings"]["properties"][field].is_null() {
                problems.push(format!("the mapping lacks `{field}` of `{line}`"));
            }
        }
    }
    let gone = |line: &&String| !lines.contains_key(*line) && !line.starts_with("[shutdown]");
    problems.extend(named.iter().filter(gone).map(|line| format!("nothing writes `{line}`")));
    problems
}

/// OBS-1: the page has every line that the hub writes and no other, and the mapping a type for every field.
#[test]
fn obs_1_the_page_and_the_mapping_have_every_line_that_the_hub_writes() {
    let mut sources = files();
    sources.retain(|file| {
        file.is_rust() && file.path.starts_with("hub/") && file.is_in("src") && file.name() != "tests.rs"
    });
    // Written by hand, because the writer of the log can't use itself.
    sources.push(File::made_up(
        "hub/server/src/log/queue.rs",
        r#"warn!(target: "seawall", dropped, "[Log][Write] Failed!")"#,
    ));
    let mapping = serde_json::from_str(&read("deploy/logs/elasticsearch.json")).expect("the mapping is JSON");
    assert!(written(&sources).len() > 50, "the lines were not found");
    let problems = problems(&sources, &read("docs/logs.md"), &mapping);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_line_that_is_on_no_page_is_found() {
    let source = r#"
        info!(target: "seawall", count = all(a, b), %took, "[Store][Open] Success.");
        warn!(target: "seawall", operation, "[Store][Put] Failed!");
        #[cfg(test)]
        error!(target: "seawall", "[Only][Test] Failed!");
    "#;
    let page = "| info | `[Store][Open] Success.` `Failed!` |\n| info | `[shutdown][part] Success.` |";
    let mapping = serde_json::json!({"template": {"mappings": {"properties": {"count": {"type": "long"}}}}});
    assert_eq!(
        problems(&[File::made_up("a.rs", source)], page, &mapping),
        [
            "the mapping lacks `took` of `[Store][Open] Success.`",
            "`[Store][Put] Failed!` is not on the page",
            "`[Store][Put] Failed!` has a field `operation`, which is a part of the line in JSON",
            "nothing writes `[Store][Open] Failed!`",
        ]
    );
}
