//! `docs/requirements.md` tells the truth: what it calls done is named by a test, and every path in it
//! exists.
//!
//! A test names its requirement in its own name (`eng_5_…`), in the comment above it or in the first comment
//! inside it. A mention elsewhere proves nothing and does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::source::is_word;
use super::{File, expect_none, files, read};
use crate::run;

const PAGE: &str = "docs/requirements.md";
const NOTHING: &str = "—";

/// How many requirements each chapter has, so that no row gets lost.
const CHAPTERS: &[(&str, u32)] = &[
    ("ENG", 17),
    ("TSK", 6),
    ("CRD", 8),
    ("ADP", 9),
    ("HUB", 15),
    ("UI", 3),
    ("SIM", 2),
    ("OBS", 3),
    ("API", 4),
    ("SEC", 4),
    ("PRM", 10),
];

struct Row {
    name: String,
    state: String,
    places: Vec<String>,
    proofs: Vec<String>,
}

/// The rows whose first cell is a requirement's name, and what is wrong with how they are written.
fn rows(page: &str) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(name) = cells.first().filter(|name| is_name(name)) else { continue };
        let [_, sentence, state, places, proofs] = cells[..] else {
            problems.push(format!("{name} has {} cells: name, what, state, where, proof", cells.len()));
            continue;
        };
        if !sentence.ends_with('.') {
            problems.push(format!("{name} is not told in a sentence"));
        }
        let (places, proofs) = (paths(places), paths(proofs));
        let written = [(&places, "where"), (&proofs, "proof")];
        let wrong = written.iter().filter(|(paths, _)| paths.is_none());
        problems.extend(
            wrong.map(|(_, cell)| format!("{name}: `{cell}` is neither {NOTHING} nor paths in backticks")),
        );
        rows.push(Row {
            name: (*name).to_owned(),
            state: state.to_owned(),
            places: places.unwrap_or_default(),
            proofs: proofs.unwrap_or_default(),
        });
    }
    (rows, problems)
}

fn is_name(text: &str) -> bool {
    let parts = text.split_once('-');
    parts.is_some_and(|(chapter, number)| {
        CHAPTERS.iter().any(|(name, _)| *name == chapter) && number.parse::<u32>().is_ok()
    })
}

/// Paths from the root, each in backticks, separated by commas.
fn paths(cell: &str) -> Option<Vec<String>> {
    if cell == NOTHING {
        return Some(Vec::new());
    }
    cell.split(',').map(|path| Some(path.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned())).collect()
}

fn problems(
    page: &str,
    tests: &BTreeMap<String, BTreeSet<String>>,
    exists: impl Fn(&str) -> bool,
) -> Vec<String> {
    let (rows, mut problems) = rows(page);
    for row in &rows {
        let name = &row.name;
        let missing = row.places.iter().chain(&row.proofs).filter(|path| !exists(path));
        problems.extend(missing.map(|path| format!("{name}: `{path}` does not exist")));
        let is_proven = tests.get(name).is_some_and(|files| {
            files.iter().any(|file| row.proofs.iter().any(|proof| file.starts_with(proof.as_str())))
        });
        match row.state.as_str() {
            "planned" | "partly" => {}
            "done" if row.places.is_empty() => {
                problems.push(format!("{name} is done and does not say where"));
            }
            "done" if is_proven => {}
            "done" => problems.push(format!("{name} is done, and no test below its `proof` names it")),
            other => problems.push(format!("{name}: `{other}` is not a state (planned, partly, done)")),
        }
    }
    let known: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    if known.len() != rows.len() {
        problems.push("a requirement has two rows".to_owned());
    }
    for (name, files) in tests.iter().filter(|(name, _)| !known.contains(name.as_str())) {
        let files = files.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        problems.push(format!("{name} is named by a test ({files}) and is not a requirement"));
    }
    problems
}

/// Every requirement that a test names, with the files of those tests.
fn named_by_tests(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut named = BTreeMap::<String, BTreeSet<String>>::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for name in names_in_tests(&file.text) {
            named.entry(name).or_default().insert(file.path.clone());
        }
    }
    named
}

fn names_in_tests(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut names = Vec::new();
    for index in (0..lines.len()).filter(|index| starts_a_test(lines[*index])) {
        let is_prelude = |line: &str| line.starts_with("//") || line.starts_with("#[");
        let above = lines[..index].iter().rev().take_while(|line| is_prelude(line)).count();
        let mut end = index + 1;
        // The function begins where attributes and comments end, its body after the line with the brace, and
        // what counts of the body is the comment that opens it.
        if is_prelude(lines[index]) {
            end += lines[end..].iter().take_while(|line| is_prelude(line)).count();
            end += lines[end..].iter().take_while(|line| !line.contains('{')).count() + 1;
            let body = lines.get(end..).unwrap_or_default();
            end += body.iter().take_while(|line| line.starts_with("//")).count();
        }
        for line in &lines[index - above..end.min(lines.len())] {
            if line.starts_with("//") {
                names.extend(names_in_comment(line));
            } else if let Some((_, function)) = line.split_once("fn ") {
                names.extend(names_in_function(function));
            }
        }
    }
    names
}

fn starts_a_test(line: &str) -> bool {
    ["#[test]", "#[tokio::test", "proptest! {"].iter().any(|start| line.starts_with(start))
}

fn names_in_comment(comment: &str) -> Vec<String> {
    let words = comment.split(|c| !is_word(c) && c != '-');
    words.filter(|word| is_name(word)).map(Into::into).collect()
}

/// `eng_5` anywhere among the words of a function's name.
fn names_in_function(function: &str) -> Vec<String> {
    let name = function.split(|c| !is_word(c)).next().unwrap_or_default();
    let words: Vec<&str> = name.split('_').collect();
    let names = words.windows(2).map(|pair| format!("{}-{}", pair[0].to_uppercase(), pair[1]));
    names.filter(|name| is_name(name)).collect()
}

#[test]
fn the_requirements_page_of_this_project_tells_the_truth() {
    let exists = |path: &str| run::root().join(path).exists();
    expect_none(&problems(&read(PAGE), &named_by_tests(&files()), exists));
}

#[test]
fn every_requirement_has_its_row() {
    let (rows, _) = rows(&read(PAGE));
    let found: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    let chapters =
        CHAPTERS.iter().flat_map(|(chapter, last)| (1..=*last).map(move |n| format!("{chapter}-{n}")));
    assert_eq!(found, chapters.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, tests: &[(&str, &str)]) -> String {
        let tests =
            tests.iter().map(|(name, file)| ((*name).to_owned(), BTreeSet::from([(*file).to_owned()])));
        problems(row, &tests.collect(), |path| path.starts_with("libs")).join(", ")
    }

    #[test]
    fn a_requirement_is_done_when_a_test_below_its_proof_names_it() {
        let row = "| ENG-5 | It trips. | done | `libs/a.rs` | `libs/b/`, `libs/c.rs` |";
        let unproven = "ENG-5 is done, and no test below its `proof` names it";
        assert_eq!(check(row, &[("ENG-5", "libs/b/tests.rs")]), "");
        assert_eq!(check(row, &[]), unproven);
        assert_eq!(check(row, &[("ENG-5", "libs/elsewhere.rs")]), unproven);
        let planned = "| ENG-5 | It trips. | planned | — | — |";
        assert_eq!(check(planned, &[]), "");
        assert_eq!(check(&row.replace("`libs/a.rs`", "—"), &[]), "ENG-5 is done and does not say where");
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        let row = "| ENG-5 | It trips. | partly | `hub/a.rs` | — |";
        assert_eq!(check(row, &[]), "ENG-5: `hub/a.rs` does not exist");
    }

    #[test]
    fn a_name_that_is_no_requirement_is_found() {
        let row = "| ENG-5 | It trips. | planned | — | — |";
        let answer = check(row, &[("ENG-99", "libs/b.rs")]);
        assert_eq!(answer, "ENG-99 is named by a test (libs/b.rs) and is not a requirement");
    }

    #[test]
    fn a_row_that_is_written_wrongly_is_found() {
        assert_eq!(
            check("| ENG-5 | It trips. | planned |", &[]),
            "ENG-5 has 3 cells: name, what, state, where, proof"
        );
        assert_eq!(check("| ENG-5 | trips | planned | — | — |", &[]), "ENG-5 is not told in a sentence");
        assert_eq!(
            check("| ENG-5 | It trips. | ready | — | — |", &[]),
            "ENG-5: `ready` is not a state (planned, partly, done)"
        );
        let bare = check("| ENG-5 | It trips. | planned | libs/a.rs | — |", &[]);
        assert_eq!(bare, "ENG-5: `where` is neither — nor paths in backticks");
        let row = "| ENG-5 | It trips. | planned | — | — |\n";
        assert_eq!(check(&row.repeat(2), &[]), "a requirement has two rows");
    }

    #[test]
    fn only_what_belongs_to_a_test_names_a_requirement() {
        let names = |text: &str| names_in_tests(text).join(" ");
        assert_eq!(names("/// ENG-5: trips.\n#[test]\nfn trips() {\n}"), "ENG-5");
        assert_eq!(names("#[tokio::test(start_paused = true)]\nasync fn eng_5_trips() {}"), "ENG-5");
        assert_eq!(
            names("#[test]\n#[cfg(unix)]\nfn trips() {\n    // ENG-5, PRM-3: trips.\n    f();\n}"),
            "ENG-5 PRM-3"
        );
        assert_eq!(names("// ENG-5\nproptest! {\n    #[test]\n    fn prm_10(x in 0..9) {\n"), "ENG-5 PRM-10");
        assert_eq!(names("#[test]\nfn trips(\n    a: u8,\n) {\n    // ENG-5\n}"), "ENG-5");
        assert_eq!(names("// ENG-5\nfn f() {}\n\n#[test]\nfn g() {\n    f();\n    // ENG-6\n}"), "");
        assert_eq!(names("//! ENG-5\n\n#[test]\nfn strength_5() {}"), "");
    }
}
