//! The hub has no hidden arguments: no task-locals, no state in statics, and one clock that `main` makes and hands on.
//!
//! A test that wants another time, author or trace passes it in. Something that a function takes from the air can't be
//! passed in, and shows in no signature.

use super::{File, expect_none, files};

/// Files that may make a clock: the commands of the binary, which hand it on.
const MAY_MAKE_A_CLOCK: &[&str] =
    &["hub/cli/src/serve.rs", "hub/cli/src/demo.rs", "hub/cli/src/backup.rs", "hub/cli/src/main.rs"];

/// Files with state in a static, each because something outside demands it. The list may only shrink.
const STATE: &[(&str, &str)] = &[
    ("hub/core/src/service/panics.rs", "the panic hook of a process takes no argument"),
    ("hub/server/src/metric_store/mod.rs", "the `metrics` crate has one recorder for a process"),
    ("hub/store/src/sqlite/engine/room.rs", "a callback of SQLite takes no argument"),
];

/// Types that hold state. A static that is computed once and never changes is a constant.
const STATE_TYPES: &[&str] =
    &["Atomic", "Mutex<", "RwLock<", ": Lock<", "OnceLock<", "Cell<", ": Once ", "Counter", "MetricStore"];

fn problem(line: &str) -> Option<&'static str> {
    let is_static = line.contains("static ") && !line.contains("&'static ") && line.contains(':');
    if line.contains("task_local!") {
        Some("a task-local is a hidden argument")
    } else if is_static && (line.contains("Clock") || line.contains("Sampler")) {
        Some("a static clock or sampler is a hidden argument")
    } else if is_static && STATE_TYPES.iter().any(|state| line.contains(state)) {
        Some("state in a static is a hidden argument")
    } else if line.contains("Clock::system") {
        Some("a clock is passed in")
    } else {
        None
    }
}

fn problems(files: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut unused: Vec<&str> = STATE.iter().map(|(path, _)| *path).collect();
    let is_checked = |file: &&File| {
        let is_source = file.path.starts_with("hub/") && file.is_in("src") && file.is_rust();
        is_source && !file.is_in("tests") && !file.name().ends_with("tests.rs")
    };
    for file in files.iter().filter(is_checked) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            let Some(problem) = problem(line.split("//").next().unwrap_or_default()) else { continue };
            let is_on_the_list = STATE.iter().any(|(path, _)| *path == file.path);
            unused.retain(|path| *path != file.path);
            if !is_on_the_list && !MAY_MAKE_A_CLOCK.contains(&&*file.path) {
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
    let word = "state in a static is a hidden argument";
    for made_up in ["static COUNT: AtomicU64 = x;", "static LAST: Lock<Option<String>> = x;"] {
        assert_eq!(check(made_up), format!("hub/server/src/a.rs:1 {word}"));
    }
    assert_eq!(check("static PAGE: LazyLock<String> = x;\nfn a(b: &'static str, c: &AtomicU64) {}"), "");
    assert_eq!(check("let clock = Clock::system();"), "hub/server/src/a.rs:1 a clock is passed in");
    assert_eq!(check("let clock = &options.clock;\n#[cfg(test)]\nfn t() { Clock::system(); }"), "");
}
