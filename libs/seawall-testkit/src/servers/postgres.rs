//! PostgreSQL, with a database for each test.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::control::{Launch, ServerControl};
use super::program::{ServerError, find_program, free_port, started};
use super::small_disk::{SMALL_DISK, SmallDisk};

/// A PostgreSQL server of the test's own.
#[derive(Debug)]
pub struct Postgres {
    control: ServerControl,
    /// Unmounted after the server has ended.
    disk: Option<SmallDisk>,
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
        PostgresBuilder { settings: Vec::new(), disk_megabytes: None }
    }

    /// The server that all tests of a process share, each with its own [database](Postgres::database). Tests that stop or
    /// pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static Postgres {
        static SHARED: LazyLock<Postgres> = LazyLock::new(|| started(Postgres::start));
        &SHARED
    }

    /// Creates an empty database.
    pub fn database(&self) -> Result<Database, ServerError> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run("creating a database", &format!("CREATE DATABASE {name}"))?;
        Ok(Database { url: format!("postgres://postgres@{}/{name}", self.address()), name })
    }

    /// Runs a statement as the superuser, and returns what it prints.
    fn run(&self, action: &str, sql: &str) -> Result<String, ServerError> {
        let port = self.port.to_string();
        let output = Command::new(&self.psql)
            .args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-c", sql])
            .output()?;
        expect_success(action, &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Starts a standby that follows this server. If it is synchronous, every commit here waits until it is on the disk there,
    /// also while the standby is away.
    pub fn standby(&self, replication: Replication) -> Result<Postgres, ServerError> {
        let copy = find_program("pg_basebackup", "postgresql")?;
        let source = self.port.to_string();
        let standby = start(Vec::new(), None, move |folder, _| {
            let output = as_server_user(folder, &copy)
                .args([
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &source,
                    "-U",
                    "postgres",
                    "-R",
                    "-X",
                    "stream",
                    "-c",
                    "fast",
                ])
                .arg("-D")
                .arg(folder.join("data"))
                .output()?;
            expect_success("pg_basebackup", &output)
        })?;
        if replication == Replication::Synchronous {
            let name = "ALTER SYSTEM SET synchronous_standby_names = '*'";
            self.run("making the standby synchronous", name)?;
            self.run("making the standby synchronous", "SELECT pg_reload_conf()")?;
        }
        Ok(standby)
    }

    /// Makes a standby a server of its own, on a new timeline. The one that it has followed should be gone by then.
    pub fn promote(&self) -> Result<(), ServerError> {
        self.run("promoting the standby", "SELECT pg_promote(true, 30)").map(drop)
    }

    /// Takes all the room that is left on the [small disk](PostgresBuilder::small_disk) of this server.
    pub fn fill_disk(&self) -> Result<(), ServerError> {
        self.small_disk()?.fill()
    }

    /// Gives back the room that [`fill_disk`](Postgres::fill_disk) has taken.
    pub fn free_disk(&self) -> Result<(), ServerError> {
        self.small_disk()?.free()
    }

    fn small_disk(&self) -> Result<&SmallDisk, ServerError> {
        self.disk.as_ref().ok_or_else(|| ServerError::Failed {
            action: "filling the disk".into(),
            output: "the server was started without `small_disk`".into(),
        })
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

    /// The address with a second server behind it: a client takes the one that can be written to.
    #[must_use]
    pub fn url_with_standby(&self, standby: SocketAddr) -> String {
        self.url.replacen(&format!("/{}", self.name), &format!(",{standby}/{}", self.name), 1)
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
    disk_megabytes: Option<u32>,
}

/// When a commit is acknowledged by a server that has a standby.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replication {
    /// When it is on the disk of both.
    Synchronous,
    /// When it is on the disk of the server: the standby may lack the last commits.
    Asynchronous,
}

impl PostgresBuilder {
    /// Adds a line of `postgresql.conf`: `max_connections=300`.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Puts the data on a file system of its own in memory, which [can be filled](Postgres::fill_disk). Needs root.
    #[must_use]
    pub fn small_disk(mut self, megabytes: u32) -> Self {
        self.disk_megabytes = Some(megabytes);
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<Postgres, ServerError> {
        let initdb = find_program("initdb", "postgresql")?;
        start(self.settings, self.disk_megabytes, move |folder, data| prepare(folder, data, &initdb))
    }
}

/// Starts a server whose data folder `fill` creates.
fn start(
    more: Vec<String>,
    disk_megabytes: Option<u32>,
    fill: impl FnOnce(&Path, &Path) -> Result<(), ServerError>,
) -> Result<Postgres, ServerError> {
    let find = |program| find_program(program, "postgresql");
    let (server, ready, psql) = (find("postgres")?, find("pg_isready")?, find("psql")?);
    let port = free_port()?;
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "max_connections=200".to_owned(),
    ];
    settings.extend(more);
    let place = if disk_megabytes.is_some() { format!("{SMALL_DISK}/data") } else { "data".to_owned() };
    let data = place.clone();
    let launch = Launch {
        name: "postgres",
        command: Box::new(move |folder| {
            let mut command = as_server_user(folder, &server);
            command.arg("-D").arg(folder.join(&data));
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
    let mut disk = None;
    let control = ServerControl::launch(launch, |folder| {
        if runs_as_root(folder)? {
            own(folder)?;
        }
        if let Some(megabytes) = disk_megabytes {
            disk = Some(SmallDisk::mount(folder, megabytes)?);
            own(&folder.join(SMALL_DISK))?;
        }
        fill(folder, &folder.join(&place))
    })?;
    Ok(Postgres { control, disk, port, psql, databases: AtomicU32::new(0) })
}

/// Gives a folder to the user of the server, because PostgreSQL refuses to run as root.
fn own(folder: &Path) -> Result<(), ServerError> {
    let output = Command::new("chown").arg("postgres").arg(folder).output()?;
    expect_success("giving the folder to the user `postgres`", &output)
}

/// Creates the data folder.
fn prepare(folder: &Path, data: &Path, initdb: &Path) -> Result<(), ServerError> {
    let output = as_server_user(folder, initdb)
        .arg("-D")
        .arg(data)
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
