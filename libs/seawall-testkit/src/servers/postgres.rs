//! PostgreSQL, with a database for each test.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::control::{Launch, ServerControl};
use super::program::{ServerError, find_program, free_port};

/// A PostgreSQL server of the test's own.
#[derive(Debug)]
pub struct Postgres {
    control: ServerControl,
    port: u16,
    psql: PathBuf,
    databases: AtomicU32,
}

/// A database of a [`Postgres`] that nobody else uses.
#[derive(Clone, Debug)]
pub struct Database {
    url: String,
    name: String,
}

impl Postgres {
    /// Starts a server with its own defaults: every commit waits for the disk.
    pub fn start() -> Result<Postgres, ServerError> {
        Postgres::builder().start()
    }

    /// Chooses how the server is started.
    #[must_use]
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder { settings: Vec::new() }
    }

    /// The server that all tests of a process share, each with its own [database](Postgres::database). Tests that stop or
    /// pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    #[expect(clippy::panic, reason = "a test without its server fails with the reason")]
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Postgres::start().unwrap_or_else(|error| panic!("{error}")))
    }

    /// Creates an empty database.
    pub fn database(&self) -> Result<Database, ServerError> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name}");
        let output = Command::new(&self.psql)
            .args([
                "-X",
                "-q",
                "-h",
                "127.0.0.1",
                "-p",
                &self.port.to_string(),
                "-U",
                "postgres",
                "-c",
                &create,
            ])
            .output()?;
        expect_success("creating a database", &output)?;
        Ok(Database { url: format!("postgres://postgres@{}/{name}", self.address()), name })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Stops, kills, pauses and starts the server.
    #[must_use]
    pub fn control(&self) -> &ServerControl {
        &self.control
    }
}

impl Database {
    /// The address as clients want it: `postgres://postgres@127.0.0.1:5432/test_0`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of this database through a [proxy](super::FaultProxy) in front of the server.
    #[must_use]
    pub fn url_through(&self, proxy: SocketAddr) -> String {
        format!("postgres://postgres@{proxy}/{}", self.name)
    }
}

/// Chooses how a [`Postgres`] is started.
#[derive(Clone, Debug)]
pub struct PostgresBuilder {
    settings: Vec<String>,
}

impl PostgresBuilder {
    /// Adds a line of `postgresql.conf`: `max_connections=300`.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<Postgres, ServerError> {
        let find = |program| find_program(program, "postgresql");
        let (server, initdb, ready) = (find("postgres")?, find("initdb")?, find("pg_isready")?);
        let psql = find("psql")?;
        let port = free_port()?;
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "max_connections=200".to_owned(),
        ];
        settings.extend(self.settings);
        let launch = Launch {
            name: "postgres",
            command: Box::new(move |folder| {
                let mut command = as_server_user(folder, &server);
                command.arg("-D").arg(folder.join("data"));
                command.arg("-c").arg(format!("unix_socket_directories={}", folder.display()));
                command.args(settings.iter().flat_map(|line| ["-c", line.as_str()]));
                command
            }),
            // A fast shutdown: clients are disconnected, transactions rolled back.
            stop_signal: "INT",
            ready: Box::new(move |_| {
                let output =
                    Command::new(&ready).args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).output();
                output.is_ok_and(|output| output.status.success())
            }),
        };
        let control = ServerControl::launch(launch, |folder| prepare(folder, &initdb))?;
        Ok(Postgres { control, port, psql, databases: AtomicU32::new(0) })
    }
}

/// Creates the data folder. PostgreSQL refuses to run as root, so its own user owns it then.
fn prepare(folder: &Path, initdb: &Path) -> Result<(), ServerError> {
    if runs_as_root(folder)? {
        let output = Command::new("chown").arg("postgres").arg(folder).output()?;
        expect_success("giving the folder to the user `postgres`", &output)?;
    }
    let output = as_server_user(folder, initdb)
        .arg("-D")
        .arg(folder.join("data"))
        .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"])
        .output()?;
    expect_success("initdb", &output)
}

/// Runs a program as the user `postgres` if the folder belongs to that user, and as the current user otherwise.
fn as_server_user(folder: &Path, program: &Path) -> Command {
    let mut command = if runs_as_root(Path::new("/proc/self")).unwrap_or(false) {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder);
    command
}

/// Whether this process runs as root: what it creates belongs to its user.
fn runs_as_root(path: &Path) -> Result<bool, ServerError> {
    Ok(std::fs::metadata(path)?.uid() == 0)
}

fn expect_success(action: &str, output: &std::process::Output) -> Result<(), ServerError> {
    if output.status.success() {
        return Ok(());
    }
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    Err(ServerError::Failed { action: action.to_owned(), output: text })
}
