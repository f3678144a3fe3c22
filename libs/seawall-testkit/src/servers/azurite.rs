//! Azurite: Azure Blob Storage in one process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use super::control::{Launch, ServerControl};
use super::fetched::{FetchedProgram, fetch_npm};
use super::http_answer::answers_http;
use super::program::{ServerError, find_program, free_port, started};

const AZURITE: FetchedProgram = FetchedProgram {
    name: "azurite",
    version: "3.37.0",
    file: "node_modules/azurite/dist/src/blob/main.js",
    fetch: fetch_npm,
};

/// Creates a container. The request is signed with the account's key, which node can do by itself.
const CREATE_CONTAINER: &str = r#"
const [url, account, key, name] = process.argv.slice(1);
const date = new Date().toUTCString(), version = '2021-08-06';
const signed = `PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${date}\nx-ms-version:${version}\n/${account}/${account}/${name}\nrestype:container`;
const signature = require('crypto').createHmac('sha256', Buffer.from(key, 'base64')).update(signed).digest('base64');
const headers = { 'x-ms-date': date, 'x-ms-version': version, authorization: `SharedKey ${account}:${signature}` };
fetch(`${url}/${name}?restype=container`, { method: 'PUT', headers }).then(async answer => {
    if (answer.status !== 201 && answer.status !== 409) { console.error(answer.status, await answer.text()); process.exit(1); }
});
"#;

/// A blob server of the test's own: Azurite, fetched from npm at its first use. A restart keeps everything.
#[derive(Debug)]
pub struct Azurite {
    control: ServerControl,
    port: u16,
}

impl Azurite {
    /// The name of the account, which is the same in every Azurite.
    pub const ACCOUNT: &'static str = "devstoreaccount1";

    /// The key of the account, which Azurite's documentation publishes. It opens nothing but emulators.
    pub const KEY: &'static str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Starts a server with its data in a temporary folder.
    pub fn start() -> Result<Azurite, ServerError> {
        let node = find_program("node", "nodejs")?;
        let program = Azurite::program()?;
        let port = free_port()?;
        let launch = Launch {
            name: "azurite",
            command: Box::new(move |folder| {
                let mut command = Command::new(&node);
                command.arg(&program).args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
                command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location"]);
                command.arg(folder);
                command
            }),
            stop_signal: "TERM",
            // Nobody may list the account without a signature, and that is an answer.
            ready: Box::new(move |_| answers_http(port, "/devstoreaccount1?comp=list", "403")),
        };
        Ok(Azurite { control: ServerControl::launch(launch, |_| Ok(()))?, port })
    }

    /// The server that all tests of a process share. Tests that stop or pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static Azurite {
        static SHARED: LazyLock<Azurite> = LazyLock::new(|| started(Azurite::start));
        &SHARED
    }

    /// The path of the server's program, which is fetched at the first call on a machine.
    pub fn program() -> Result<PathBuf, ServerError> {
        AZURITE.path()
    }

    /// Creates a container, unless it is there.
    pub fn create_container(&self, name: &str) -> Result<(), ServerError> {
        let node = find_program("node", "nodejs")?;
        let output = Command::new(node)
            .args(["-e", CREATE_CONTAINER, &self.url(), Azurite::ACCOUNT, Azurite::KEY, name])
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ServerError::Failed { action: format!("creating the container {name}"), output })
    }

    /// The address of the account: `http://127.0.0.1:10000/devstoreaccount1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}", self.address(), Azurite::ACCOUNT)
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
