//! Doc comments in the hub are sentences that stand alone.
//!
//! Rustdoc and editors show a doc comment without its neighbours. `/// Why.` or the second half of the line
//! above say nothing there. Where there is nothing to say, there is no comment: `missing_docs` is off for the
//! crates of the hub.

use super::{File, expect_none, files};

const WORDS_MIN: usize = 3;

/// Beginnings that hide what is counted or who is meant. The first letter is the only one in upper case.
const BANNED: &[&str] = &["So many", "So much", "So long", "Whoever"];

/// The command line, whose comments are the help: imperatives such as `List services.`
const HELP: &str = "hub/cli/src/";
const HELP_WORDS_MIN: usize = 2;

/// A doc comment: the number of its first line, and its text in one line.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker)).unwrap_or_default();
        let marker = if line.starts_with("////") { "" } else { marker };
        if !marker.is_empty() {
            if marker != before {
                found.push((index + 1, String::new()));
            }
            let (_, text) = found.last_mut().expect("there is one by now");
            *text = format!("{text} {}", line[marker.len()..].trim()).trim().to_owned();
        }
        before = marker;
    }
    found
}

/// What is wrong with a comment.
fn problem(comment: &str, words_min: usize) -> Option<&'static str> {
    let words = comment.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    let begins = |c: char| c.is_uppercase() || c.is_numeric() || "`[#*|<\"".contains(c);
    if !comment.starts_with(begins) {
        Some("begins in the middle of a sentence")
    } else if words < words_min {
        Some("is too short to say anything")
    } else if BANNED.iter().any(|banned| comment.starts_with(banned)) {
        Some("does not name what it is about")
    } else {
        None
    }
}

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.path.starts_with("hub/")) {
        let words_min = if file.path.starts_with(HELP) { HELP_WORDS_MIN } else { WORDS_MIN };
        problems.extend(comments(&file.text).into_iter().filter_map(|(line, comment)| {
            Some(format!("{}:{line} {}: {comment}", file.path, problem(&comment, words_min)?))
        }));
    }
    problems
}

#[test]
fn doc_comments_of_the_hub_stand_alone() {
    expect_none(&problems(&files()));
}

#[test]
fn a_comment_that_does_not_stand_alone_is_found() {
    let check = |text: &str| problems(&[File::made_up("hub/core/src/a.rs", text)]).join(", ");
    assert_eq!(check("/// Why.\nx: u8,"), "hub/core/src/a.rs:1 is too short to say anything: Why.");
    assert_eq!(
        check("/// The first of them,\na: u8,\n/// and the last of them.\nb: u8,"),
        "hub/core/src/a.rs:3 begins in the middle of a sentence: and the last of them."
    );
    assert_eq!(
        check("    /// So many at most.\n    most: u8,"),
        "hub/core/src/a.rs:1 does not name what it is about: So many at most."
    );
    assert!(check("//! Whoever has it may use it.").contains("does not name what it is about"));
    assert_eq!(
        check("/// The maximum number\n/// of rows.\nmost: u8,\n// why\n//// x\nlet url = 1; // so"),
        ""
    );
    assert_eq!(check("/// `None` means all.\n/// [`Store`] has them.\nx: u8,"), "");
    for (path, text) in [("libs/a/src/a.rs", "/// Why."), ("hub/cli/src/a.rs", "/// List services.")] {
        assert_eq!(problems(&[File::made_up(path, text)]), [""; 0]);
    }
    assert_eq!(problems(&[File::made_up("hub/cli/src/a.rs", "/// Why.")]).len(), 1);
}
