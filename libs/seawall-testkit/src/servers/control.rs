//! Starts, stops, pauses and kills the process of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::folder::ServerFolder;
use super::program::ServerError;

/// How long a server may take until it is ready, and until it has stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the launcher looks whether a server is ready or has stopped.
const POLL: Duration = Duration::from_millis(20);

/// How a server is started and stopped.
pub struct Launch {
    /// The name of the server, for messages and for its folder.
    pub name: &'static str,
    /// The program with its arguments. It stays in the foreground.
    pub command: Box<dyn Fn(&Path) -> Command + Send + Sync>,
    /// The signal that makes the server stop in an orderly way: `TERM` or `INT`.
    pub stop_signal: &'static str,
    /// Answers whether the server takes requests.
    pub ready: Box<dyn Fn(&Path) -> bool + Send + Sync>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The process of a server, and its folder.
#[derive(Debug)]
pub struct ServerControl {
    launch: Launch,
    folder: ServerFolder,
    process: Mutex<Option<Child>>,
}

impl ServerControl {
    /// Creates the folder, prepares it, starts the server, and waits until it is ready.
    pub fn launch(
        launch: Launch,
        prepare: impl FnOnce(&Path) -> Result<(), ServerError>,
    ) -> Result<Self, ServerError> {
        let folder = ServerFolder::create(launch.name)?;
        prepare(folder.path())?;
        let control = ServerControl { launch, folder, process: Mutex::new(None) };
        control.start()?;
        Ok(control)
    }

    /// The folder of the server.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// Starts the server on its old data and its old port, and waits until it is ready. Does nothing if it runs.
    pub fn start(&self) -> Result<(), ServerError> {
        let mut process = self.process();
        if process.is_some() {
            return Ok(());
        }
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path())?;
        let child = (self.launch.command)(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.folder.write_pid(child.id())?;
        let child = process.insert(child);
        let path = self.folder.path();
        wait_until(|| (self.launch.ready)(path) || child.try_wait().is_ok_and(|exit| exit.is_some()));
        if child.try_wait()?.is_some() || !(self.launch.ready)(path) {
            let log = fs::read_to_string(self.log_path()).unwrap_or_default();
            return Err(self.failed("starting", &log));
        }
        Ok(())
    }

    /// Stops the server in an orderly way and waits until it is gone.
    pub fn stop(&self) -> Result<(), ServerError> {
        self.end(self.launch.stop_signal)
    }

    /// Kills the server with its children, as a crash would.
    pub fn kill(&self) -> Result<(), ServerError> {
        self.end("KILL")
    }

    /// Stops the server from running without ending it: connections stay open and nothing is answered.
    pub fn pause(&self) -> Result<(), ServerError> {
        let stopped = self.signal_all("STOP")?;
        // One thread takes the signal and stops the others. On a busy machine they answer requests until it has its turn.
        wait_until(|| stopped.iter().all(|pid| is_stopped(*pid)));
        Ok(())
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<(), ServerError> {
        self.signal_all("CONT").map(|_| ())
    }

    fn end(&self, signal: &str) -> Result<(), ServerError> {
        let mut process = self.process();
        let Some(mut child) = process.take() else { return Ok(()) };
        let family = family(child.id());
        if signal == "KILL" {
            send(signal, &family)?;
        } else {
            send(signal, &family[..1])?;
        }
        wait_until(|| child.try_wait().is_ok_and(|exit| exit.is_some()));
        if child.try_wait()?.is_none() {
            send("KILL", &family)?;
            child.wait()?;
            return Err(self.failed("stopping", "it did not stop by itself and was killed"));
        }
        // A child that is still there holds the port or the memory of the server.
        wait_until(|| family[1..].iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
        Ok(())
    }

    fn signal_all(&self, signal: &str) -> Result<Vec<u32>, ServerError> {
        let process = self.process();
        let child = process.as_ref().ok_or_else(|| self.failed("signalling", "the server does not run"))?;
        let family = family(child.id());
        send(signal, &family)?;
        Ok(family)
    }

    fn failed(&self, action: &str, output: &str) -> ServerError {
        ServerError::Failed { action: format!("{action} {}", self.launch.name), output: output.to_owned() }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("output.log")
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerControl {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// A process and all its descendants, itself first.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name of the program is in brackets and may hold anything; the parent is the second word after it.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent: u32| (child, parent)));
    }
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}

/// True if all threads of a process are stopped, or it is gone.
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        state.is_none_or(|state| matches!(state, "T" | "t" | "Z" | "X"))
    })
}

/// Sends a signal to processes. One that is gone already is no error.
pub(crate) fn send(signal: &str, pids: &[u32]) -> Result<(), ServerError> {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let script = format!("for pid in {}; do kill -{signal} $pid 2>/dev/null; done; true", pids.join(" "));
    Command::new("sh").args(["-c", &script]).status()?;
    Ok(())
}

/// Waits until the condition holds, at most [`PATIENCE`].
#[expect(
    clippy::disallowed_methods,
    reason = "a process outside cannot be awaited, and its time is the real one"
)]
fn wait_until(mut condition: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() && begin.elapsed() < PATIENCE {
        std::thread::sleep(POLL);
    }
}
