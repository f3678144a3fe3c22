//! Words that no file of the project may contain: paths of one machine, and promises without an issue.

use super::{File, expect_none, files};

/// Home folders. In pieces, so that this file does not contain what it looks for.
const HOMES: &[&[&str]] = &[&["/wo", "rk/"], &["/ro", "ot/"], &["/ho", "me/"]];

const PROMISES: &[&[&str]] = &[&["TO", "DO"], &["FIX", "ME"]];

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            for home in HOMES.iter().map(|pieces| pieces.concat()) {
                if starts_a_path(line, &home) {
                    problems.push(format!("{place} names a folder of one machine (`{home}`)"));
                }
            }
            for promise in PROMISES.iter().map(|pieces| pieces.concat()) {
                if !line.split(&promise).skip(1).all(names_an_issue) {
                    problems.push(format!("{place} says {promise} without an issue: write {promise}(#12)"));
                }
            }
        }
    }
    problems
}

/// Whether the path begins here, rather than being the middle of another one (`docs/work/…`).
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.}".contains(c)))
}

/// `after` is what follows the word: an issue number, or a backtick where the word itself is spoken of.
fn names_an_issue(after: &str) -> bool {
    let number = after.trim_start_matches([' ', '(', ':']);
    let is_issue =
        number.strip_prefix('#').is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    is_issue || after.starts_with('`')
}

#[test]
fn this_project_names_no_machine_and_promises_nothing_without_an_issue() {
    expect_none(&problems(&files()));
}

#[test]
fn a_path_of_one_machine_is_found() {
    for home in HOMES.iter().map(|pieces| pieces.concat()) {
        let check = |line: String| problems(&[File::made_up("a.md", &line)]).len();
        assert_eq!(check(format!("see {home}notes")), 1);
        assert_eq!(check(format!("file://{home}notes")), 1);
        assert_eq!(check(format!("docs{home}notes")), 0);
    }
}

#[test]
fn a_promise_without_an_issue_is_found() {
    for promise in PROMISES.iter().map(|pieces| pieces.concat()) {
        let check = |line: String| problems(&[File::made_up("a.rs", &line)]).len();
        assert_eq!(check(format!("// {promise}: later")), 1);
        assert_eq!(check(format!("// {promise}(#7): later, {promise} again")), 1);
        assert_eq!(check(format!("// {promise}(#7): later")), 0);
        assert_eq!(check(format!("no `{promise}` without an issue")), 0);
    }
}
