//! Runs the tests, and those that failed once more, alone.
//!
//! Why a second run: some two thousand tests share two cores with real brokers and databases, and some of them measure how long
//! something takes. A test that fails there and passes alone has shown that the machine was busy, or a race. Neither should
//! stop a change that has nothing to do with it, and neither should pass unseen: the run closes with a list of them, and more
//! than [`UNSTEADY_MAX`] fail it. A test that fails twice fails the run.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail};

use crate::run::{cargo, root};

/// The maximum number of tests that may fail in the first run and pass in the second.
const UNSTEADY_MAX: usize = 5;

/// The failures that cargo and the test binaries printed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures {
    /// The names of the tests.
    tests: BTreeSet<String>,
    /// The arguments that select each test binary: `--test dist`, `--lib`.
    targets: BTreeSet<String>,
}

/// Runs `cargo test` with these arguments, all binaries whatever fails, and what failed once more.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let (kinds, filters) = split(args);
    let mut first: Vec<String> = ["test", "--no-fail-fast"].map(Into::into).into();
    first.extend(kinds.iter().cloned());
    if !filters.is_empty() {
        first.push("--".into());
        first.extend(filters.iter().cloned());
    }
    let (success, output) = printed(&first)?;
    if success {
        return Ok(());
    }
    let failures = Failures::read(&output);
    let Failures { tests, targets } = &failures;
    if tests.is_empty() || targets.is_empty() {
        bail!("the tests failed before any test had a result");
    }
    if tests.len() > UNSTEADY_MAX {
        bail!("{} tests failed: {}", tests.len(), list(tests));
    }
    println!("\n==> once more, alone: {}", list(tests));
    for target in targets {
        let again = second(kinds, target, tests);
        if !printed(&again)?.0 {
            bail!("failed twice, in `{target}`: one of {}", list(tests));
        }
    }
    println!("\n==> UNSTEADY: failed once and passed alone, and should be looked at: {}", list(tests));
    Ok(())
}

/// What stands before `--` and what stands behind it.
fn split(args: &[String]) -> (&[String], &[String]) {
    match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

/// The arguments of the second run of one binary. The packages and features stay, so that nothing is compiled again.
fn second(kinds: &[String], target: &str, tests: &BTreeSet<String>) -> Vec<String> {
    const KINDS: [&str; 5] = ["--all-targets", "--lib", "--bins", "--tests", "--examples"];
    let mut args = vec!["test".to_owned()];
    args.extend(kinds.iter().filter(|arg| !KINDS.contains(&arg.as_str())).cloned());
    args.extend(target.split(' ').map(Into::into));
    args.extend(["--", "--exact", "--test-threads=1"].map(Into::into));
    args.extend(tests.iter().cloned());
    args
}

fn list(tests: &BTreeSet<String>) -> String {
    tests.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Runs cargo, prints what it prints, and returns that too.
fn printed(args: &[String]) -> anyhow::Result<(bool, String)> {
    let mut child = Command::new(cargo())
        .args(args)
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start `cargo {}`", args.join(" ")))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || err.map_or_else(String::new, |err| passed_on(err, io::stderr())));
    let mut output = out.map_or_else(String::new, |out| passed_on(out, io::stdout()));
    let status = child.wait()?;
    output.push_str(&errors.join().unwrap_or_default());
    Ok((status.success(), output))
}

/// Writes line by line what comes, and returns it.
fn passed_on(from: impl Read, mut to: impl Write) -> String {
    let mut reader = BufReader::new(from);
    let (mut all, mut line) = (String::new(), Vec::new());
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // Nobody may read it; the tests go on all the same.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        all.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    all
}

impl Failures {
    fn read(output: &str) -> Self {
        let mut failures = Failures::default();
        for line in output.lines() {
            if let Some(test) = failed_test(line) {
                failures.tests.insert(test.to_owned());
            }
            if let Some(target) = failed_target(line) {
                failures.targets.insert(target);
            }
        }
        failures
    }
}

/// The test of a line like `test outbox::relay ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// The arguments of a line like ``    `-p seawall-dist --test dist` ``, without its package.
fn failed_target(line: &str) -> Option<String> {
    let words = line.strip_prefix("    `-p ")?.strip_suffix('`')?;
    let (_, target) = words.split_once(' ')?;
    Some(target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
test lock::a ... ok
test lock::b ... FAILED
test lock::c - should panic ... FAILED
error: 2 targets failed:
    `-p seawall-dist --test dist`
    `-p seawall-hub-core --lib`
";

    fn texts(words: &str) -> Vec<String> {
        words.split(' ').map(Into::into).collect()
    }

    #[test]
    fn failed_tests_and_their_binaries_are_found() {
        let failures = Failures::read(OUTPUT);
        assert_eq!(failures.tests, ["lock::b", "lock::c"].map(Into::into).into());
        assert_eq!(failures.targets, ["--lib", "--test dist"].map(Into::into).into());
        assert_eq!(Failures::read("test a ... ok\nerror: could not compile `x`"), Failures::default());
    }

    #[test]
    fn the_second_run_is_of_one_binary_one_test_after_the_other() {
        let kinds = texts("--workspace --all-features --lib --tests");
        let tests = ["lock::b".to_owned()].into();
        assert_eq!(
            second(&kinds, "--test dist", &tests),
            texts("test --workspace --all-features --test dist -- --exact --test-threads=1 lock::b")
        );
    }

    #[test]
    fn filters_stay_behind_the_dashes() {
        let args = texts("--workspace -- --skip judge::");
        assert_eq!(split(&args), (&texts("--workspace")[..], &texts("--skip judge::")[..]));
    }
}
