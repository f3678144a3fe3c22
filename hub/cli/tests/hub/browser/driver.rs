//! A real browser, by the WebDriver protocol: JSON over HTTP to `chromedriver`, which moves a Chromium.
//!
//! Why no client library: what is needed are a dozen calls, each one request with one answer.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::within;

/// The busiest machine starts a browser within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// By this name the protocol says that something is an element of a page.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
pub(super) const TAB: &str = "\u{E004}";
pub(super) const ENTER: &str = "\u{E007}";
pub(super) const ESCAPE: &str = "\u{E00C}";

pub(super) struct Browser {
    driver: Child,
    address: String,
    session: String,
    clicks: Cell<u32>,
    /// The profile is thrown away with it.
    _profile: TempDir,
}

/// A driver and its port, unless it ended before it listened.
fn start_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("`chromedriver` can be started; the Debian packages are chromium and chromium-driver");
    let said = BufReader::new(driver.stdout.take().unwrap());
    let port = said.lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse::<u16>().ok()
    });
    match port {
        Some(port) => Some((driver, port)),
        None => {
            let _ = driver.wait();
            None
        }
    }
}

impl Browser {
    pub(super) fn start() -> Self {
        let profile = TempDir::new().unwrap();
        // It looks for a free port and takes it a moment later: of several that start at once one may come too late, and ends.
        let (driver, port) =
            (0..5).find_map(|_| start_driver()).expect("chromedriver starts and says where it listens");
        let address = format!("127.0.0.1:{port}");
        let mut args: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1280,1000",
        ]
        .map(ToOwned::to_owned)
        .to_vec();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let mut browser =
            Browser { driver, address, session: String::new(), clicks: Cell::new(0), _profile: profile };
        let begun = browser.ask("POST", "/session", &wanted).expect("a browser starts");
        browser.session = format!("/session/{}", begun["sessionId"].as_str().unwrap());
        browser
    }

    /// One call of the protocol: its value, or the word for what is wrong.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        sent.map_err(|error| error.to_string())?;
        let HttpMessage { body, .. } =
            HttpMessage::read(&mut BufReader::new(stream)).map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].take()),
        }
    }

    fn post(&self, command: &str, body: &Value) -> Result<Value, String> {
        self.ask("POST", &format!("{}/{command}", self.session), body)
    }

    fn must(&self, command: &str, body: &Value) -> Value {
        self.post(command, body).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    pub(super) fn open(&self, url: &str) {
        self.must("url", &json!({"url": url}));
    }

    /// Where it is: the path of the page, with its query.
    pub(super) fn at(&self) -> String {
        self.eval("return location.pathname + location.search").as_str().unwrap().to_owned()
    }

    /// The body of a function that runs in the page.
    pub(super) fn eval(&self, script: &str) -> Value {
        self.eval_with(script, &[])
    }

    pub(super) fn eval_with(&self, script: &str, args: &[Value]) -> Value {
        self.must("execute/sync", &json!({"script": script, "args": args}))
    }

    /// The same for one that calls its last argument when it is done.
    pub(super) fn eval_later(&self, script: &str, args: &[Value]) -> Value {
        self.must("execute/async", &json!({"script": script, "args": args}))
    }

    /// The first element, by CSS, or by XPath if it begins with `//`.
    fn find(&self, which: &str) -> Result<String, String> {
        let using = if which.starts_with("//") { "xpath" } else { "css selector" };
        let found = self.post("element", &json!({"using": using, "value": which}))?;
        Ok(found[ELEMENT].as_str().unwrap().to_owned())
    }

    /// Does something to an element, once it is there: a page that is live may put another in its place at any time.
    fn to(&self, which: &str, command: &str, body: &Value) {
        let mut last = String::new();
        within(Duration::from_secs(20), &format!("{command} {which}"), || {
            let done = self
                .find(which)
                .and_then(|element| self.post(&format!("element/{element}/{command}"), body))
                .map_err(|error| last.clone_from(&error));
            let passing = ["no such element", "stale element", "not interactable", "click intercepted"];
            assert!(done.is_ok() || passing.iter().any(|word| last.contains(word)), "{which}: {last}");
            done.is_ok()
        });
    }

    pub(super) fn click(&self, which: &str) {
        self.to(which, "click", &json!({}));
        self.clicks.set(self.clicks.get() + 1);
    }

    /// Returns the number of clicks since the start.
    pub(super) fn clicks(&self) -> u32 {
        self.clicks.get()
    }

    pub(super) fn write(&self, which: &str, text: &str) {
        self.to(which, "value", &json!({"text": text}));
    }

    pub(super) fn clear(&self, which: &str) {
        self.to(which, "clear", &json!({}));
    }

    /// Presses a key, wherever the focus is.
    pub(super) fn press(&self, key: &str) {
        let both = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.must("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": both}]}));
    }

    /// The text of the first element; nothing, if there is none.
    pub(super) fn text(&self, css: &str) -> Option<String> {
        let found = self.eval_with(
            "return document.querySelector(arguments[0])?.innerText?.trim() ?? null",
            &[json!(css)],
        );
        found.as_str().map(ToOwned::to_owned)
    }

    pub(super) fn count(&self, css: &str) -> u64 {
        self.eval_with("return document.querySelectorAll(arguments[0]).length", &[json!(css)])
            .as_u64()
            .unwrap()
    }

    /// Waits until a script says `true`. Another page may come meanwhile.
    pub(super) fn wait(&self, what: &str, script: &str) {
        self.wait_within(Duration::from_secs(30), what, script);
    }

    /// The same for what takes its time.
    pub(super) fn wait_long(&self, what: &str, script: &str) {
        self.wait_within(Duration::from_secs(180), what, script);
    }

    fn wait_within(&self, most: Duration, what: &str, script: &str) {
        let question = json!({"script": format!("return {script}"), "args": []});
        within(most, &format!("{what}; it is at {}", self.at()), || {
            self.post("execute/sync", &question).is_ok_and(|answer| answer == true)
        });
    }

    pub(super) fn wait_for_page(&self, path: &str) {
        self.wait(
            &format!("the page {path}"),
            &format!("location.pathname.startsWith({}) && document.readyState === 'complete'", json!(path)),
        );
    }

    /// What the console says that is no success, since it was asked last.
    pub(super) fn console(&self) -> Vec<String> {
        let said = self.must("se/log", &json!({"type": "browser"}));
        let bad = |entry: &&Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        said.as_array()
            .unwrap()
            .iter()
            .filter(bad)
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// A command of the browser's own protocol.
    pub(super) fn command(&self, name: &str, params: &Value) -> Value {
        self.must("goog/cdp/execute", &json!({"cmd": name, "params": params}))
    }

    /// `light` or `dark`, as the system of whoever looks says.
    pub(super) fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    pub(super) fn resize(&self, width: u32, height: u32, mobile: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// The whole page, as a PNG.
    pub(super) fn picture(&self) -> Vec<u8> {
        let taken =
            self.command("Page.captureScreenshot", &json!({"format": "png", "captureBeyondViewport": true}));
        BASE64.decode(taken["data"].as_str().unwrap()).unwrap()
    }

    pub(super) fn cookies(&self) -> Vec<Value> {
        let found = self.ask("GET", &format!("{}/cookie", self.session), &Value::Null).unwrap();
        found.as_array().unwrap().clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends the browser; without its word, that would go on by itself.
        let _ = self.ask("DELETE", &self.session, &json!({}));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
