//! `docs/dev/how-an-event-flows.md` is true, and the walk does not get longer.
//!
//! A newcomer follows an event by that page. Each of its steps names a function and a file; a step in another file
//! costs the reader a jump. The page says how many jumps there are at most, and that number may only go down. A second page has
//! the same walk through the code before the redesign, so that the counts can be compared; its functions are gone.

use std::collections::BTreeSet;

use super::source::{code, is_word};
use super::{File, expect_none, files, read};

const PAGE: &str = "docs/dev/how-an-event-flows.md";
const BEFORE: &str = "docs/dev/event-flow-before.md";

/// What is counted, by the first word of its row.
const COUNTED: [&str; 3] = ["files", "jumps", "returns"];

/// A step of the walk: the name of a function and the path of its file.
type Step<'a> = (&'a str, &'a str);

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// The rows ``| 7 | `function` | `file` | … |``, with or without what the function does.
fn steps(page: &str) -> Vec<Step<'_>> {
    let step = |line| match cells(line)[..] {
        [number, function, file] | [number, function, file, _] if number.parse::<u32>().is_ok() => {
            Some((quoted(function)?, quoted(file)?))
        }
        _ => None,
    };
    page.lines().filter_map(step).collect()
}

/// Files, jumps and returns of a walk.
fn counts(steps: &[Step<'_>]) -> [usize; 3] {
    let (mut left, mut jumps, mut returns) = (BTreeSet::new(), 0, 0);
    for pair in steps.windows(2) {
        let (from, to) = (pair[0].1, pair[1].1);
        left.insert(from);
        jumps += usize::from(from != to);
        returns += usize::from(from != to && left.contains(to));
    }
    let files: BTreeSet<&str> = steps.iter().map(|(_, file)| *file).collect();
    [files.len(), jumps, returns]
}

/// The counts of the page before and now, and the limit, from the row that begins with this word.
fn written(page: &str, word: &str) -> Option<[usize; 3]> {
    page.lines().map(cells).find_map(|row| match row[..] {
        [what, before, now, most] if what.split(' ').next() == Some(word) => {
            Some([before.parse().ok()?, now.parse().ok()?, most.parse().ok()?])
        }
        _ => None,
    })
}

fn defines(file: &File, function: &str) -> bool {
    let code = code(&file.text);
    let name = format!("fn {function}");
    code.match_indices(&name).any(|(at, _)| !code[at + name.len()..].starts_with(is_word))
}

fn problems(page: &str, before: &str, files: &[File]) -> Vec<String> {
    let steps = steps(page);
    let mut problems = Vec::new();
    for (function, path) in &steps {
        let file = files.iter().find(|file| file.path == *path);
        if !file.is_some_and(|file| defines(file, function)) {
            problems.push(format!("{PAGE}: there is no function `{function}` in `{path}`"));
        }
    }
    let found = counts(&steps).into_iter().zip(counts(&self::steps(before)));
    for (word, (found, found_before)) in COUNTED.into_iter().zip(found) {
        let Some([before, now, most]) = written(page, word) else {
            problems.push(format!("{PAGE} does not say how many {word} there are"));
            continue;
        };
        if before != found_before {
            problems.push(format!("{PAGE} says {before} {word} before, and {BEFORE} has {found_before}"));
        }
        if now != found {
            problems.push(format!("{PAGE} says {now} {word}, and has {found}"));
        } else if now > most {
            problems.push(format!("{PAGE}: {now} {word}, at most {most} are allowed"));
        }
    }
    problems
}

#[test]
fn the_walk_of_an_event_is_as_the_page_says() {
    let page = read(PAGE);
    assert!(steps(&page).len() > 100, "the page has the whole walk");
    expect_none(&problems(&page, &read(BEFORE), &files()));
}

#[test]
fn a_step_that_is_gone_and_a_walk_that_is_longer_are_found() {
    let before = "| 1 | `a` | `x.rs` |\n| 2 | `b` | `y.rs` |\n";
    let page = "| | before | now | at most |\n| files | 2 | 2 | 2 |\n| jumps (x) | 3 | 2 | 1 |\n| returns (y) | 0 | 0 | 1 |\n\
                | 1 | `accept` | `a.rs` | x |\n| 2 | `gone` | `b.rs` | x |\n| 3 | `prepare` | `a.rs` | x |\n";
    let files = [
        File::made_up("a.rs", "fn accept() {}\nfn prepare_all() {}\n// fn prepare()\n"),
        File::made_up("b.rs", "fn gone_by() {}\n"),
    ];
    assert_eq!(
        problems(page, before, &files),
        [
            format!("{PAGE}: there is no function `gone` in `b.rs`"),
            format!("{PAGE}: there is no function `prepare` in `a.rs`"),
            format!("{PAGE} says 3 jumps before, and {BEFORE} has 1"),
            format!("{PAGE}: 2 jumps, at most 1 are allowed"),
            format!("{PAGE} says 0 returns, and has 1"),
        ]
    );
}
