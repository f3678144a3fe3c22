//! A NATS server with JetStream.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use super::control::{Launch, ServerControl};
use super::program::{ServerError, find_program, free_port, started};

/// A NATS server of the test's own, with JetStream and its streams on disk.
#[derive(Debug)]
pub struct Nats {
    control: ServerControl,
    port: u16,
    user: Option<(String, String)>,
}

impl Nats {
    /// Starts a server that asks for no credentials.
    pub fn start() -> Result<Nats, ServerError> {
        Nats::builder().start()
    }

    /// Chooses how the server is started.
    #[must_use]
    pub fn builder() -> NatsBuilder {
        NatsBuilder::default()
    }

    /// The server that all tests of a process share. Tests that stop or pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static Nats {
        static SHARED: LazyLock<Nats> = LazyLock::new(|| started(Nats::start));
        &SHARED
    }

    /// The address as clients want it, with the credentials if the server asks for some: `nats://127.0.0.1:4222`.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.user {
            Some((user, password)) => self.url_as(user, password),
            None => format!("nats://{}", self.address()),
        }
    }

    /// The address with other credentials.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("nats://{user}:{password}@{}", self.address())
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Stops, kills, pauses and starts the server. Streams are kept over all of them.
    #[must_use]
    pub fn control(&self) -> &ServerControl {
        &self.control
    }
}

/// Chooses how a [`Nats`] is started.
#[derive(Clone, Debug, Default)]
pub struct NatsBuilder {
    user: Option<(String, String)>,
    payload_bytes_max: Option<u32>,
    stored_bytes_max: Option<u64>,
}

impl NatsBuilder {
    /// Lets in only this user with this password.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// Limits the size of a message, headers included; one mebibyte unless told.
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.payload_bytes_max = Some(bytes);
        self
    }

    /// Limits what all streams together may store on disk.
    #[must_use]
    pub fn stored_bytes_max(mut self, bytes: u64) -> Self {
        self.stored_bytes_max = Some(bytes);
        self
    }

    /// Starts the server and waits until it takes clients.
    pub fn start(self) -> Result<Nats, ServerError> {
        let program = find_program("nats-server", "nats-server")?;
        let port = free_port()?;
        let launch = Launch {
            name: "nats",
            command: Box::new(move |folder| {
                let mut command = Command::new(&program);
                command.arg("-c").arg(folder.join("nats.conf"));
                command
            }),
            stop_signal: "TERM",
            ready: Box::new(move |_| answers(port)),
        };
        let settings = self.settings(port);
        let control = ServerControl::launch(launch, |folder| {
            let store = folder.join("jetstream");
            let text = settings.replace("STORE_DIR", &store.display().to_string());
            Ok(fs::write(folder.join("nats.conf"), text)?)
        })?;
        Ok(Nats { control, port, user: self.user })
    }

    fn settings(&self, port: u16) -> String {
        let mut text = format!("listen: \"127.0.0.1:{port}\"\n");
        let limit = self.stored_bytes_max.map(|bytes| format!(", max_file: {bytes}")).unwrap_or_default();
        let _ = writeln!(text, "jetstream {{ store_dir: \"STORE_DIR\"{limit} }}");
        if let Some(bytes) = self.payload_bytes_max {
            let _ = writeln!(text, "max_payload: {bytes}");
        }
        if let Some((user, password)) = &self.user {
            let _ = writeln!(text, "authorization {{ user: \"{user}\", password: \"{password}\" }}");
        }
        text
    }
}

/// Whether the server greets a client, and has JetStream.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let patience = Duration::from_secs(1);
    let greet = || {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        std::io::Result::Ok(line.starts_with("INFO ") && line.contains("\"jetstream\":true"))
    };
    greet().unwrap_or(false)
}
