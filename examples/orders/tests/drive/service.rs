//! The service as a process of its own.

use std::future::Future;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::World;

/// The guards of the example, unless a test changes them.
pub const CONFIG: &str = include_str!("../../config.yaml");

pub struct Service {
    process: Child,
    stdout: BufReader<ChildStdout>,
    url: String,
    config: PathBuf,
    client: reqwest::Client,
    log: Arc<Mutex<Vec<String>>>,
}

impl Service {
    pub fn start(binary: &str, world: &World) -> Self {
        let port = world.east.url.rsplit(':').next().expect("a port");
        let config = std::env::temp_dir().join(format!("orders-{}-{port}.yaml", std::process::id()));
        std::fs::write(&config, CONFIG).expect("a writable folder");
        let mut process = Command::new(binary)
            .env("LISTEN", "127.0.0.1:0")
            .env("CONFIG", &config)
            .env("INVENTORY_EAST", &world.east.url)
            .env("INVENTORY_WEST", &world.west.url)
            .env("CATALOGUE", &world.catalogue.url)
            .env("PAYMENTS", &world.payments.url)
            .env("SHUTDOWN_DELAY_MS", "0")
            .env("LOG_LEVEL", "debug")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the service was built");
        let mut stdout = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("text");
        let address = first.strip_prefix("listening on ").expect("it says where it listens");
        let url = format!("http://{}", address.trim());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (stderr, lines) = (process.stderr.take().expect("it is piped"), log.clone());
        std::thread::spawn(move || {
            let read = BufReader::new(stderr).lines().map_while(Result::ok);
            read.for_each(|line| lines.lock().expect("no panic").push(line));
        });
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Service { process, stdout, url, config, client, log }
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.client.get(format!("{}{path}", self.url))).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.client.post(format!("{}{path}", self.url)).json(&body)).await
    }

    /// A request in the trace of a caller.
    pub async fn get_traced(&self, path: &str, trace_id: &str) -> (u16, Value) {
        let parent = format!("00-{trace_id}-00f067aa0ba902b7-01");
        answer(self.client.get(format!("{}{path}", self.url)).header("traceparent", parent)).await
    }

    pub async fn text(&self, path: &str) -> String {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        response.text().await.expect("text")
    }

    /// Replaces the configuration in one step.
    pub fn configure(&self, config: &str) {
        let newer = self.config.with_extension("new");
        std::fs::write(&newer, config).expect("a writable folder");
        std::fs::rename(newer, &self.config).expect("a writable folder");
    }

    /// Whether a line of the log has all of these in it.
    pub fn logged(&self, parts: &[&str]) -> bool {
        self.log.lock().expect("no panic").iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }

    pub fn terminate(&self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("there is a `kill`").success());
    }

    /// Whether new connections are refused.
    pub fn refuses(&self) -> bool {
        std::net::TcpStream::connect(self.url.trim_start_matches("http://")).is_err()
    }

    /// Waits for its end: its report and its exit code.
    pub fn end(&mut self) -> (String, Option<i32>) {
        let code = self.process.wait().expect("it ends").code();
        let report: Vec<String> = self.stdout.by_ref().lines().map_while(Result::ok).collect();
        (report.join("\n"), code)
    }
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

/// Nothing that a failed test has started goes on.
impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.config);
    }
}

/// Waits until something is so.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}
