//! What all tests of the binary share: the process, and a client that keeps its connection. The peer is in `peer.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use seawall_testkit::http::{HttpConnection, HttpMessage};
use seawall_testkit::servers::{Database, Postgres};
use serde_json::Value;

pub(crate) use seawall_testkit::http::header;
pub(crate) use seawall_testkit::{until_blocking as until, until_blocking_within as within};

pub(crate) const KEY: &str = "a-key-that-is-long-enough";

/// The binary as users get it.
pub(crate) const SEAWALL: &str = env!("CARGO_BIN_EXE_seawall");

pub(crate) struct Hub {
    pub(crate) process: Child,
    pub(crate) address: String,
}

impl Hub {
    pub(crate) fn start(folder: &Path) -> Self {
        Hub::ready(Hub::command(Path::new(SEAWALL), folder).spawn().unwrap()).unwrap()
    }

    /// How a hub is started on this folder, by this binary.
    pub(crate) fn command(binary: &Path, folder: &Path) -> Command {
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-egress", "127.0.0.0/8", "--data-dir"])
            .arg(folder)
            .env("SEAWALL_ADMIN_KEY", KEY)
            // What tests do to a hub is its log full of; what it needs a person for is shown.
            .env("SEAWALL_LOG_LEVEL", "error")
            .stdout(Stdio::piped());
        if let Some(url) = database_of(folder) {
            command.env("SEAWALL_DATABASE", url);
        }
        command
    }

    /// Waits until a process that was started listens. Nothing, if it ends instead.
    pub(crate) fn ready(process: Child) -> Option<Self> {
        Hub::listening(process).map(|(hub, _)| hub)
    }

    /// The same, with what it has said until then.
    pub(crate) fn listening(mut process: Child) -> Option<(Self, Vec<String>)> {
        let mut said = Vec::new();
        for line in BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let address = line
                .split_once("http://")
                .and_then(|(_, rest)| rest.split(',').next())
                .map(ToOwned::to_owned);
            said.push(line);
            if let Some(address) = address {
                return Some((Hub { process, address }, said));
            }
        }
        process.wait().unwrap();
        None
    }

    pub(crate) fn ask(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {key}");
        let Reply { status, body, .. } = self.call(method, path, &[("authorization", &bearer)], body);
        (status, body)
    }

    /// A request with these headers, and none besides.
    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut headers = headers.to_vec();
        headers.extend([("host", "hub"), ("connection", "close")]);
        let mut connection = HttpConnection::connect(&*self.address).unwrap();
        // A body that is too large is answered before it has come.
        let response = connection.exchange(method, path, &headers, body.as_bytes()).unwrap();
        let (status, text, body) = (response.status().unwrap(), response.text(), response.json());
        Reply { status, head: response.head, body, text }
    }

    /// A request of an administrator with more headers.
    pub(crate) fn with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let bearer = format!("Bearer {KEY}");
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.call(method, path, &all, &body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, KEY, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer["data"].clone()
    }

    /// Something that has to succeed.
    pub(crate) fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let Reply { status, body: answer, .. } = self.with(method, path, &[], body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer["data"].clone()
    }

    /// Every item of a list, page by page.
    pub(crate) fn all(&self, path: &str, name: &str, page_size: usize) -> Vec<Value> {
        let (mut items, mut token) = (Vec::new(), String::new());
        let question = if path.contains('?') { '&' } else { '?' };
        loop {
            let page = self.get(&format!("{path}{question}page_size={page_size}&page_token={token}"));
            let found = page[name].as_array().unwrap();
            assert!(found.len() <= page_size);
            items.extend(found.iter().cloned());
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            if token.is_empty() {
                return items;
            }
        }
    }

    /// The deliveries that an event leads to.
    pub(crate) fn send(&self, event: &Value) -> Vec<Value> {
        let data = self.must("POST", "/api/v1/bridge/events", event);
        data["deliveries"].as_array().unwrap().clone()
    }

    /// The circuit of a service.
    pub(crate) fn circuit(&self, service: &str) -> Value {
        self.get(&format!("/api/v1/registry/services/{service}/circuit"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, KEY, &body.to_string())
    }

    /// The answer, if there is one: the hub may end meanwhile.
    pub(crate) fn try_post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        Client::connect(&self.address).ok()?.ask("POST", path, &body.to_string()).ok()
    }

    pub(crate) fn delivery(&self, id: &Value) -> Value {
        self.ask("GET", &format!("/api/v1/bridge/deliveries/{}", id.as_str().unwrap()), KEY, "").1["data"]
            .clone()
    }

    pub(crate) fn wait_for(&self, id: &Value, state: &str) -> Value {
        let mut delivery = Value::Null;
        until(&format!("{id} is {state}"), || {
            delivery = self.delivery(id);
            delivery["state"] == state
        });
        delivery
    }
}

/// The variable that makes hubs keep their data in PostgreSQL: each folder gets a database of its own.
const TEST_DATABASE: &str = "SEAWALL_TEST_DATABASE";

/// The database of a folder, if the tests run with one.
fn database_of(folder: &Path) -> Option<String> {
    static DATABASES: Mutex<BTreeMap<PathBuf, Database>> = Mutex::new(BTreeMap::new());
    if std::env::var(TEST_DATABASE).ok()? != "postgres" {
        return None;
    }
    let mut databases = DATABASES.lock().unwrap();
    let new = || Postgres::shared().database().unwrap();
    Some(databases.entry(folder.to_owned()).or_insert_with(new).url().to_owned())
}

/// An answer of the hub.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of a hub that keeps its connection.
pub(crate) struct Client {
    address: String,
    connection: HttpConnection,
}

impl Client {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        Ok(Client { address: address.to_owned(), connection: HttpConnection::connect(address)? })
    }

    /// The address of the hub.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// An error means that the outcome is not known.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let response = self.exchange(method, path, body)?;
        let status = response.status();
        let status = status.ok_or_else(|| io::Error::other(format!("no status in `{}`", response.head)))?;
        Ok((status, response.json()))
    }

    /// The response as it came.
    pub(crate) fn exchange(&mut self, method: &str, path: &str, body: &str) -> io::Result<HttpMessage> {
        let bearer = format!("Bearer {KEY}");
        self.connection.exchange(
            method,
            path,
            &[("host", "hub"), ("authorization", &bearer)],
            body.as_bytes(),
        )
    }
}
