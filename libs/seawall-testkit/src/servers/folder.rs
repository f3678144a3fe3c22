//! The folder of a server, which outlives neither its owner nor the test process.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A temporary folder with the process id of the server that runs in it.
///
/// A small shell waits beside it for the end of the test process: its standard input is a pipe that the kernel closes
/// whatever way the process ends. Then it kills the server and removes the folder. A value in a `static` is never dropped,
/// and a killed process drops nothing, so `Drop` alone would leave servers behind.
#[derive(Debug)]
pub(crate) struct ServerFolder {
    path: PathBuf,
    watcher: Child,
}

/// Kills what `pid` names, which may be stopped, unmounts a small disk, and removes the folder.
const WATCH: &str = r#"cat >/dev/null; kill -9 $(cat "$1/pid" 2>/dev/null) 2>/dev/null; sleep 0.2; umount -l "$1/disk" 2>/dev/null; rm -rf "$1""#;

impl ServerFolder {
    pub(crate) fn create(name: &str) -> io::Result<Self> {
        let path = unique_path(name)?;
        let watcher = Command::new("sh")
            .args(["-c", WATCH, "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to the whole group of the test. The watcher must survive it.
            .process_group(0)
            .spawn()?;
        Ok(ServerFolder { path, watcher })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write_pid(&self, pid: u32) -> io::Result<()> {
        fs::write(self.path.join("pid"), pid.to_string())
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Creates a folder that nobody has yet: the name has the process id and a number of its own.
fn unique_path(name: &str) -> io::Result<PathBuf> {
    let base = std::env::temp_dir();
    for number in 0_u32.. {
        let path = base.join(format!("seawall-{name}-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
    Err(io::Error::other("no free name for a temporary folder"))
}
