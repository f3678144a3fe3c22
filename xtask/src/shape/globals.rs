//! The hub has no hidden arguments: no task-locals, no static clocks, and one clock that `main` makes and hands on.
//!
//! A test that wants another time, author or trace passes it in. Something that a function takes from the air can't be
//! passed in, and shows in no signature.

use super::{File, expect_none, files};

/// Files that may make a clock: the commands of the binary, which hand it on.
const MAY_MAKE_A_CLOCK: &[&str] =
    &["hub/cli/src/serve.rs", "hub/cli/src/demo.rs", "hub/cli/src/backup.rs", "hub/cli/src/main.rs"];

/// Files that make a clock for what only they measure. The list may only shrink.
const NOT_YET: &[&str] = &["hub/cli/src/command/follow.rs", "hub/cli/src/command/dlq/choose.rs"];

fn problem(line: &str) -> Option<&'static str> {
    let is_static = line.contains("static ") && line.contains(':');
    if line.contains("task_local!") {
        Some("a task-local is a hidden argument")
    } else if is_static && (line.contains("Clock") || line.contains("Sampler")) {
        Some("a static clock or sampler is a hidden argument")
    } else if line.contains("Clock::system") {
        Some("a clock is passed in")
    } else {
        None
    }
}

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut unused = NOT_YET.to_vec();
    let is_checked = |file: &&File| {
        let is_source = file.path.starts_with("hub/") && file.is_in("src") && file.is_rust();
        is_source && !file.is_in("tests") && !file.name().ends_with("tests.rs")
    };
    for file in files.iter().filter(is_checked) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            let Some(problem) = problem(line.split("//").next().unwrap_or_default()) else { continue };
            if MAY_MAKE_A_CLOCK.contains(&&*file.path) || NOT_YET.contains(&&*file.path) {
                unused.retain(|path| *path != file.path);
            } else {
                problems.push(format!("{}:{} {problem}", file.path, index + 1));
            }
        }
    }
    problems.extend(unused.iter().map(|path| format!("`{path}` is in order: take it off the list")));
    problems
}

#[test]
fn the_hub_has_no_hidden_arguments() {
    expect_none(&problems(&files()));
}

#[test]
fn a_hidden_argument_is_found() {
    let check = |text: &str| {
        let mut found = problems(&[File::made_up("hub/server/src/a.rs", text)]);
        found.retain(|problem| problem.starts_with("hub/"));
        found.join(", ")
    };
    assert_eq!(check("tokio::task_local! {"), "hub/server/src/a.rs:1 a task-local is a hidden argument");
    let word = "a static clock or sampler is a hidden argument";
    assert_eq!(check("\nstatic CLOCK: LazyLock<Clock> = x;"), format!("hub/server/src/a.rs:2 {word}"));
    assert_eq!(check("static FAILURES: LazyLock<Sampler> = x;"), format!("hub/server/src/a.rs:1 {word}"));
    assert_eq!(check("let clock = Clock::system();"), "hub/server/src/a.rs:1 a clock is passed in");
    assert_eq!(check("let clock = &options.clock;\n#[cfg(test)]\nfn t() { Clock::system(); }"), "");
}
