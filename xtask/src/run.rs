//! Runs a list of commands one after the other, says which one is running, and closes with a table of times.
//!
//! Why stop at the first failure: a later step (tests) says nothing new when an earlier one (compiling) has
//! failed, and whoever waits wants to know early.

use std::env;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// The longest time that a step of the checks may take. The longest one takes a third of it; one that takes longer waits for
/// something that does not come, and whoever reads the output wants to know for what.
pub(crate) const LIMIT: Duration = Duration::from_secs(40 * 60);
/// How often a step is asked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `run` and `test`; the compiled-in value serves a binary that is started by
    // hand.
    let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir.parent().map(Path::to_path_buf).expect("xtask lies in a folder of the workspace")
}

/// The cargo that started us, so that `cargo +nightly xtask ci` stays on that toolchain.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// The command line makes no sense. Kept apart from other errors because it ends with another exit code.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Refuses whatever is left of a command line.
    pub(crate) fn expect_none(command: &str, rest: &[String]) -> Result<(), Self> {
        rest.first().map_or(Ok(()), |extra| Err(Self::new(format!("`{command}` does not know `{extra}`"))))
    }
}

/// What follows a command that runs for as long as one asks: `--minutes N`, or nothing.
pub(crate) fn minutes(command: &str, args: &[String], usual: u32) -> Result<u32, Usage> {
    match args {
        [] => Ok(usual),
        [flag, minutes] if flag == "--minutes" => {
            minutes.parse().map_err(|_| Usage::new(format!("`{minutes}` is not a number of minutes")))
        }
        [flag] if flag == "--minutes" => Err(Usage::new("`--minutes` needs a number")),
        rest => Usage::expect_none(command, rest).map(|()| usual),
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// One cargo command with the name under which it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    name: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Step {
    /// `args` is split at spaces; what may hold a space itself goes through [`Step::arg`].
    pub(crate) fn cargo(name: impl Into<String>, args: &str) -> Self {
        Self { name: name.into(), args: args.split_whitespace().map(Into::into).collect(), env: Vec::new() }
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds `flags` to what the variable already holds, so that the flags of whoever started us stay in
    /// force.
    pub(crate) fn flags(mut self, variable: &'static str, flags: &str) -> Self {
        let before = env::var(variable).unwrap_or_default();
        self.env.push((variable, format!("{before} {flags}").trim().to_owned()));
        self
    }

    /// Sets a variable, whatever it held before.
    pub(crate) fn env(mut self, variable: &'static str, value: &str) -> Self {
        self.env.push((variable, value.to_owned()));
        self
    }

    /// What one would type to run this step alone.
    pub(crate) fn line(&self) -> String {
        let quoted = |text: &str| if text.contains(' ') { format!("'{text}'") } else { text.to_owned() };
        let variables = self.env.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
        let args = self.args.iter().map(|arg| format!(" {}", quoted(arg)));
        variables.chain(["cargo".to_owned()]).chain(args).collect()
    }

    /// Runs it for as long as it takes.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.run_within(Duration::MAX)
    }

    fn run_within(&self, limit: Duration) -> anyhow::Result<()> {
        let mut child = Command::new(cargo())
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(root())
            .spawn()
            .with_context(|| format!("could not start `{}`", self.line()))?;
        let Some(status) = wait(&mut child, limit)? else {
            let hung = end_descendants(child.id());
            let _ = child.kill();
            bail!(
                "step `{}` hung: it was ended after {} min; alone: {}\nwhat it was running:\n{hung}",
                self.name,
                minutes_of(limit),
                self.line()
            );
        };
        if !status.success() {
            bail!("step `{}` failed ({status}); alone: {}", self.name, self.line());
        }
        Ok(())
    }
}

/// Waits for the end of a process; `None` if it still runs after `limit`.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let started = now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::park_timeout(POLL_INTERVAL);
    }
    Ok(None)
}

/// Kills what a process started, and what that started in turn. Returns a line for each: a test binary that hangs is one of
/// them, and one that lives on would keep the output open and so whoever reads it waiting.
fn end_descendants(of: u32) -> String {
    let Ok(listed) = Command::new("ps").args(["-eo", "pid=,ppid=,args="]).output() else {
        return "`ps` is missing".to_owned();
    };
    let descendants = descendants(&String::from_utf8_lossy(&listed.stdout), of);
    for (id, _) in &descendants {
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
    }
    descendants.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

/// The children of a process and their children, by the lines of `ps`: process, parent, command.
fn descendants(listed: &str, of: u32) -> Vec<(u32, String)> {
    let parsed = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (id, parent) = (words.next()?.parse::<u32>().ok()?, words.next()?.parse::<u32>().ok()?);
        Some((id, parent, line.trim()))
    });
    let parsed: Vec<_> = parsed.collect();
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for (id, _, line) in parsed.iter().filter(|(_, its_parent, _)| *its_parent == parent) {
            parents.push(*id);
            found.push((*id, (*line).to_owned()));
        }
    }
    found
}

/// Runs the steps in order and stops at the first that fails. The table of times is printed either way.
pub(crate) fn all(steps: &[Step]) -> anyhow::Result<()> {
    all_within(steps, Duration::MAX)
}

/// The same; a step that takes longer than `limit` fails.
pub(crate) fn all_within(steps: &[Step], limit: Duration) -> anyhow::Result<()> {
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut outcome = Ok(());
    for (index, step) in steps.iter().enumerate() {
        println!("==> [{}/{}] {}: {}", index + 1, steps.len(), step.name, step.line());
        let started = now();
        outcome = step.run_within(limit);
        times.push((&step.name, started.elapsed()));
        if outcome.is_err() {
            break;
        }
    }
    println!("\n{}", table(&times, steps.len()));
    outcome
}

#[expect(clippy::disallowed_methods, reason = "the times are told to a person; nothing is decided by them")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn table(times: &[(&str, Duration)], planned: usize) -> String {
    let total = times.iter().map(|(_, time)| *time).sum();
    let not_run = planned - times.len();
    let last = if not_run == 0 { "total".to_owned() } else { format!("total, {not_run} not run") };
    let rows: Vec<(&str, Duration)> = times.iter().copied().chain([(last.as_str(), total)]).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, time)| format!("{name:<width$}  {:>9} min", minutes_of(*time)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Minutes, seconds and tenths: `1:01.0`.
fn minutes_of(time: Duration) -> String {
    let tenths = time.as_millis().div_ceil(100);
    format!("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lines_up_and_says_what_was_not_run() {
        let times = [("format", Duration::from_millis(1_240)), ("documentation", Duration::from_secs(61))];
        assert_eq!(
            table(&times, 4),
            "format               0:01.3 min\ndocumentation        1:01.0 min\ntotal, 2 not run     1:02.3 min"
        );
        assert!(table(&times, 2).ends_with("total             1:02.3 min"));
    }

    #[test]
    fn a_process_that_hangs_is_given_up_and_so_is_what_it_started() {
        let mut child =
            Command::new("sh").args(["-c", "sleep 600 & wait"]).spawn().expect("there is a shell");
        assert_eq!(wait(&mut child, Duration::from_millis(200)).expect("it can be asked"), None);
        let hung = end_descendants(child.id());
        assert!(hung.contains("sleep 600"), "{hung}");
        // The shell waits for nothing any more.
        assert!(wait(&mut child, Duration::from_secs(10)).expect("it can be asked").is_some());
    }

    #[test]
    fn descendants_are_children_and_their_children_and_no_others() {
        let listed = "   1     0 init\n  10     1 cargo test\n  11    10 hub --exact\n  12    11 seawall serve\n  20     1 vi\n";
        let ids: Vec<u32> = descendants(listed, 10).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [11, 12]);
    }

    #[test]
    fn the_line_of_a_step_can_be_pasted_into_a_shell() {
        let mut step = Step::cargo("docs", "doc --no-deps").arg("a b");
        step.env.push(("RUSTDOCFLAGS", "-D warnings".into()));
        assert_eq!(step.line(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'a b'");
    }
}
