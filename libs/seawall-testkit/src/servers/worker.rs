//! A second process of a test: the test binary itself, told to run one function.

use std::collections::HashMap;
use std::env;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::control::{family, send};
use super::program::ServerError;

/// The setting that tells a test binary that it is a worker.
const WORKER: &str = "SEAWALL_TEST_WORKER";

/// A process that a test starts, pauses and kills. It is killed when the value is dropped.
///
/// A worker is a test that does nothing unless it is started as one:
///
/// ```no_run
/// use seawall_testkit::servers::{WorkerProcess, worker_settings};
/// # mod worker { #[allow(unused)]
/// #[test]
/// fn lock_worker() {
///     let Some(settings) = seawall_testkit::servers::worker_settings() else { return };
///     println!("connecting to {}", settings["REDIS"]);
/// }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // The name of the function is its whole path in the test binary.
/// let mut worker = WorkerProcess::spawn("worker::lock_worker", &[("REDIS", "redis://127.0.0.1/")])?;
/// worker.pause()?;
/// worker.kill()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl WorkerProcess {
    /// Starts this test binary again, to run one of its tests alone as a worker with these settings.
    pub fn spawn(test: &str, settings: &[(&str, &str)]) -> io::Result<WorkerProcess> {
        let mut child = Command::new(env::current_exe()?)
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .envs(settings.iter().map(|(name, value)| (format!("{WORKER}_{name}"), value)))
            .env(WORKER, "yes")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().map(BufReader::new);
        Ok(WorkerProcess { child, output })
    }

    /// Waits for the next line that the worker prints; `None` when it has ended.
    pub fn read_line(&mut self) -> io::Result<Option<String>> {
        let Some(output) = &mut self.output else { return Ok(None) };
        let mut line = String::new();
        let count = output.read_line(&mut line)?;
        Ok((count > 0).then(|| line.trim_end().to_owned()))
    }

    /// Takes the worker's output, to be read elsewhere.
    pub fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// Whether the worker still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|exit| exit.is_none())
    }

    /// Stops the worker from running without ending it (SIGSTOP).
    pub fn pause(&self) -> Result<(), ServerError> {
        send("STOP", &family(self.child.id()))
    }

    /// Lets a paused worker go on (SIGCONT).
    pub fn resume(&self) -> Result<(), ServerError> {
        send("CONT", &family(self.child.id()))
    }

    /// Kills the worker (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// Waits until the worker ends by itself; true if its test passed.
    pub fn wait(&mut self) -> io::Result<bool> {
        Ok(self.child.wait()?.success())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The settings of the [worker](WorkerProcess) that this process is, or `None` in the test process itself.
#[must_use]
pub fn worker_settings() -> Option<HashMap<String, String>> {
    env::var_os(WORKER)?;
    let prefix = format!("{WORKER}_");
    Some(
        env::vars()
            .filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?.to_owned(), value)))
            .collect(),
    )
}
