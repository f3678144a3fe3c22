//! What `deploy/logs` makes of a line: every line that a page names is understood, in text and in JSON.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::Value;

/// Level, module, operation and status of a line.
pub(super) type Line = [String; 4];

/// The fields that follow it, one value with spaces and none in quotes.
const FIELDS: &str = r#"traceId=0af7651916cd43dd8448eb211c80319c key="A 7" cause=protocol fault (http 500)"#;

/// The lines that the tables of a page name: rows of `| level | line | … |`. A cell may name several operations and words
/// after one another; a word alone is of a guard's call.
pub(super) fn lines_of(page: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in page.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let &[_, levels, line, ..] = &cells[..] else { continue };
        let Some(level) = levels.split(", ").find(|level| matches!(*level, "info" | "warn" | "error")) else {
            continue;
        };
        let mut places: Vec<(String, String)> = vec![("payments".into(), "charge".into())];
        let mut is_open = false;
        for token in line.split('`').skip(1).step_by(2) {
            let (brackets, status) = match token.rfind("] ") {
                Some(at) => (&token[..=at], &token[at + 2..]),
                None if token.starts_with('[') => (token, ""),
                None => ("", token),
            };
            let parts: Vec<&str> = brackets.split(['[', ']']).filter(|part| !part.is_empty()).collect();
            if !parts.is_empty() {
                let module = if parts.len() == 2 { parts[0].to_owned() } else { places[0].0.clone() };
                let place = (module, parts[parts.len() - 1].to_owned());
                if is_open {
                    places.push(place);
                } else {
                    places = vec![place];
                }
                is_open = status.is_empty();
            }
            if !status.is_empty() {
                is_open = false;
                for (module, operation) in &places {
                    lines.push([level.to_uppercase(), module.clone(), operation.clone(), status.to_owned()]);
                }
            }
        }
    }
    lines
}

/// A Grok pattern of the file as a regular expression, with the few of Logstash's own that it uses.
fn grok(file: &str, name: &str) -> String {
    let own = [
        ("DATA", ".*?"),
        ("NOTSPACE", r"\S+"),
        ("LOGLEVEL", "(?:DEBUG|INFO|WARN|ERROR)"),
        ("TIMESTAMP_ISO8601", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z"),
    ];
    let mut patterns: BTreeMap<&str, &str> = own.into();
    patterns
        .extend(file.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')));
    let reference = Regex::new(r"%\{(\w+)(?::(\w+))?\}").expect("it is one");
    let mut text = format!("%{{{name}}}");
    while reference.is_match(&text) {
        let expand = |found: &Captures<'_>| match found.get(2) {
            Some(field) => format!("(?P<{}>{})", field.as_str(), patterns[&found[1]]),
            None => format!("(?:{})", patterns[&found[1]]),
        };
        text = reference.replace_all(&text, expand).into_owned();
    }
    text
}

/// The expressions of the pipeline, in their order: that of messages, that of lines.
fn expressions(pipeline: &str) -> Vec<&str> {
    pipeline
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expression: '")?.strip_suffix('\''))
        .collect()
}

/// What a pattern makes of a line, if it understands it.
fn read(pattern: &Regex, text: &str) -> Option<(Line, String)> {
    let found = pattern.captures(text)?;
    let part = |name| found.name(name).map_or(String::new(), |part| part.as_str().to_owned());
    Some((["level", "module", "operation", "status"].map(part), part("fields")))
}

/// What is not understood.
fn problems(lines: &[Line], grok: &Regex, loki: &Regex) -> Vec<String> {
    let mut problems = Vec::new();
    for line in lines {
        let [level, module, operation, status] = line;
        for head in [
            format!("2026-11-15T15:45:32.123Z {level:5} "),
            format!("2026-11-15T15:45:32.123456Z {level:>5} seawall: "),
            format!("{level} seawall: "),
        ] {
            for fields in ["", FIELDS] {
                let text = format!("{head}[{module}][{operation}] {status} {fields}");
                for (name, pattern) in [("grok", grok), ("loki", loki)] {
                    if read(pattern, text.trim_end()) != Some((line.clone(), fields.to_owned())) {
                        problems.push(format!("{name} does not understand {text}"));
                    }
                }
            }
        }
    }
    problems
}

const HUB: &str = include_str!("../../../docs/logs.md");
const LIBRARY: &str = include_str!("../../../libs/seawall/docs/telemetry.md");
const GROK: &str = include_str!("../../../deploy/logs/seawall.grok");
const LOKI: &str = include_str!("../../../deploy/logs/loki.yaml");
const MAPPING: &str = include_str!("../../../deploy/logs/elasticsearch.json");

/// OBS-1: the Grok pattern and the Loki pipeline understand every line of the pages, in text.
#[test]
fn obs_1_every_line_of_the_pages_is_understood() {
    let lines: Vec<Line> = [HUB, LIBRARY].into_iter().flat_map(lines_of).collect();
    assert!(lines.len() > 60, "the tables were not found: {lines:?}");
    let grok = Regex::new(&grok(GROK, "SEAWALL_LINE")).expect("the Grok pattern is one");
    let loki = Regex::new(expressions(LOKI)[1]).expect("the pipeline's expression is one");
    let problems = problems(&lines, &grok, &loki);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // What libraries say has no form.
    let library = ["WARN", "hyper::proto", "log", "connection error: reset by peer (os error 104)"];
    let problems = self::problems(&[library.map(ToOwned::to_owned)], &grok, &loki);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // A row that names no line is one that nobody holds against anything.
    let rows = HUB.split("## Every line").nth(1).expect("the table").lines();
    for row in rows.filter(|row| row.starts_with("| ") && !row.starts_with("| level")) {
        assert!(!lines_of(row).is_empty(), "no line was found in: {row}");
    }
    for example in [HUB, LIBRARY].into_iter().flat_map(str::lines).filter(|line| {
        line.contains("][") && ["2026-", " INFO", " WARN", "ERROR"].iter().any(|head| line.starts_with(head))
    }) {
        assert!(read(&grok, example.trim()).is_some(), "grok does not understand {example}");
        assert!(read(&loki, example.trim()).is_some(), "loki does not understand {example}");
    }
}

/// OBS-1: in JSON too, where a line of the library is one message.
#[test]
fn obs_1_every_message_of_the_library_is_understood() {
    let message = Regex::new(expressions(LOKI)[0]).expect("the pipeline's expression is one");
    for [_, module, operation, status] in lines_of(LIBRARY) {
        let (line, _) = read(&message, &format!("[{module}][{operation}] {status}")).expect(&status);
        assert_eq!(line, [String::new(), module, operation, status]);
    }
}

/// OBS-1: the mapping knows every field that the examples and the list of the library's fields name.
#[test]
fn obs_1_the_mapping_has_the_fields_of_the_pages() {
    let mapping: Value = serde_json::from_str(MAPPING).expect("the mapping is JSON");
    let known = &mapping["template"]["mappings"]["properties"];
    let list = LIBRARY.split("Fields: ").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the list");
    let mut fields: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert!(fields.len() > 8, "{fields:?}");
    fields.extend(["time", "level", "module", "operation", "status"]);
    let example = HUB.lines().find(|line| line.starts_with("2026-")).expect("an example");
    let name = Regex::new(r" ([A-Za-z]+)=").expect("it is one");
    fields.extend(name.captures_iter(example).filter_map(|found| found.get(1)).map(|name| name.as_str()));
    let missing: Vec<_> = fields.into_iter().filter(|field| known[field].is_null()).collect();
    assert!(missing.is_empty(), "the mapping lacks {missing:?}");
}

#[test]
fn a_line_that_is_not_understood_is_found() {
    let page = "| error | `[Hub][Stop] Failed!` `gone` `[Store][Put]` `[Get]` `Success.` |\n| other | `[No][Line] Here.` |";
    let lines = lines_of(page);
    let texts: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
    assert_eq!(
        texts,
        [
            "ERROR Hub Stop Failed!",
            "ERROR Hub Stop gone",
            "ERROR Store Put Success.",
            "ERROR Store Get Success."
        ]
    );
    let grok = Regex::new(&grok(GROK, "SEAWALL_LINE")).expect("the Grok pattern is one");
    let loki = Regex::new(expressions(LOKI)[1]).expect("the pipeline's expression is one");
    let strange = ["error", "Hub", "Stop", "Failed!"].map(ToOwned::to_owned);
    assert_eq!(problems(&[strange], &grok, &loki).len(), 12, "a level that is none");
}
