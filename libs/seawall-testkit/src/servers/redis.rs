//! Redis, one node or several.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use super::control::{Launch, ServerControl};
use super::program::{ServerError, find_program, free_port, started};

/// A Redis server of the test's own.
#[derive(Debug)]
pub struct Redis {
    control: ServerControl,
    port: u16,
}

impl Redis {
    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Result<Redis, ServerError> {
        Redis::builder().start()
    }

    /// Chooses how the server is started.
    #[must_use]
    pub fn builder() -> RedisBuilder {
        RedisBuilder { durable: false }
    }

    /// The server that all tests of a process share. Tests that stop or pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static Redis {
        static SHARED: LazyLock<Redis> = LazyLock::new(|| started(Redis::start));
        &SHARED
    }

    /// The address as clients want it: `redis://127.0.0.1:6379/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
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

/// Chooses how a [`Redis`] is started.
#[derive(Clone, Copy, Debug)]
pub struct RedisBuilder {
    durable: bool,
}

impl RedisBuilder {
    /// Writes every command to disk before the server answers (`appendfsync always`), so that a restart keeps it.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<Redis, ServerError> {
        let program = find_program("redis-server", "redis-server")?;
        let port = free_port()?;
        let append = if self.durable { "yes" } else { "no" };
        let launch = Launch {
            name: "redis",
            command: Box::new(move |folder| {
                let mut command = Command::new(&program);
                command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
                command.args(["--appendonly", append, "--appendfsync", "always", "--daemonize", "no"]);
                command.arg("--dir").arg(folder);
                command
            }),
            stop_signal: "TERM",
            ready: Box::new(move |_| answers(port)),
        };
        Ok(Redis { control: ServerControl::launch(launch, |_| Ok(()))?, port })
    }
}

/// Whether the server answers a ping: one that still loads its file says so instead.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let patience = Duration::from_secs(1);
    let ping = || {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        std::io::Result::Ok(&answer == b"+PONG")
    };
    ping().unwrap_or(false)
}
