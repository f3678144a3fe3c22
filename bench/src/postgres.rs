//! A PostgreSQL server of the benchmark's own.
//!
//! The test tools have one too, but they turn the engine's clock into tokio's, and then every other benchmark of this workspace would
//! measure that.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server in a temporary folder. It is stopped and deleted when the value is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Server {
    /// Starts a server with its own defaults: every commit waits for the disk. It runs as the user `postgres`, because it refuses root.
    pub fn start() -> io::Result<Server> {
        let programs =
            programs().ok_or_else(|| io::Error::other("no PostgreSQL below /usr/lib/postgresql"))?;
        let folder = std::env::temp_dir().join(format!("seawall-bench-postgres-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        run(Command::new("chown").arg("postgres").arg(&folder))?;
        let data = folder.join("data");
        run(as_postgres(&programs.join("initdb"), &folder)
            .arg("-D")
            .arg(&data)
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8"]))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = as_postgres(&programs.join("postgres"), &folder);
        server.arg("-D").arg(&data).args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]);
        server.args([
            "-c",
            &format!("port={port}"),
            "-c",
            &format!("unix_socket_directories={}", folder.display()),
        ]);
        let server =
            Server { child: server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?, folder, port };
        for _ in 0..300 {
            let port = port.to_string();
            let ready = Command::new(programs.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port])
                .status()?;
            if ready.success() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(io::Error::other("PostgreSQL did not start within 30 s"))
    }

    /// The address of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An immediate end: the child may be `setpriv`, which has become the server itself.
        let _ = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .filter_map(Result::ok)
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max()
}

fn as_postgres(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"])
        .arg(program)
        .current_dir(folder);
    command
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {text}"))) }
}
