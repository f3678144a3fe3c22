//! File sizes as a ratchet.
//!
//! Above 400 lines there is usually a second idea in a file. One that is longer for a reason stands in
//! `file-sizes.txt` with its size, and that size can only shrink: nobody has to decide each time whether
//! three more lines matter.

use std::collections::BTreeMap;

use super::source::product_lines;
use super::{File, expect_none, files, read};

const LINES_MAX: usize = 400;
const EXCEPTIONS: &str = "xtask/file-sizes.txt";

/// `exceptions` holds lines of the form `path allowed-lines`; `#` begins a comment.
fn problems(files: &[File], exceptions: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut allowed = BTreeMap::new();
    for line in exceptions.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.rsplit_once(' ').map(|(path, lines)| (path.trim(), lines.parse::<usize>())) {
            Some((path, Ok(lines))) => drop(allowed.insert(path, lines)),
            _ => problems.push(format!("{EXCEPTIONS}: `{line}` is not a path and a number of lines")),
        }
    }
    for file in
        files.iter().filter(|file| file.is_rust() && !file.is_in("tests") && file.name() != "tests.rs")
    {
        let (path, lines) = (&file.path, product_lines(&file.text));
        match allowed.remove(path.as_str()) {
            None if lines > LINES_MAX => {
                problems
                    .push(format!("{path} has {lines} lines of {LINES_MAX}: look for the second idea in it"));
            }
            Some(_) if lines <= LINES_MAX => {
                problems.push(format!("{path} has {lines} lines: take it off the list"));
            }
            Some(max) if lines > max => {
                problems.push(format!("{path} has grown from {max} to {lines} lines"));
            }
            Some(max) if lines < max => {
                problems.push(format!("{path} has shrunk from {max}: lower it to {lines}"));
            }
            _ => {}
        }
    }
    problems.extend(allowed.keys().map(|path| format!("{path} is on the list and does not exist")));
    problems
}

#[test]
fn no_file_of_this_project_is_longer_than_agreed() {
    expect_none(&problems(&files(), &read(EXCEPTIONS)));
}

#[test]
fn sizes_may_only_shrink() {
    let check = |lines: usize, exceptions: &str| {
        problems(&[File::made_up("a.rs", &"x\n".repeat(lines))], exceptions).join(", ")
    };
    assert_eq!(check(400, ""), "");
    assert_eq!(check(401, ""), "a.rs has 401 lines of 400: look for the second idea in it");
    assert_eq!(check(500, "# long for a reason\na.rs 500"), "");
    assert_eq!(check(501, "a.rs 500"), "a.rs has grown from 500 to 501 lines");
    assert_eq!(check(480, "a.rs 500"), "a.rs has shrunk from 500: lower it to 480");
    assert_eq!(check(400, "a.rs 500"), "a.rs has 400 lines: take it off the list");
    assert_eq!(check(1, "b.rs 500"), "b.rs is on the list and does not exist");
    assert_eq!(check(1, "a.rs"), "xtask/file-sizes.txt: `a.rs` is not a path and a number of lines");
}

#[test]
fn tests_do_not_count() {
    let long = "x\n".repeat(500);
    let in_tests = [File::made_up("a/tests/b.rs", &long), File::made_up("a/src/tests.rs", &long)];
    assert_eq!(problems(&in_tests, ""), Vec::<String>::new());
    let inline = File::made_up("a.rs", &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n"));
    assert_eq!(problems(&[inline], ""), Vec::<String>::new());
}
