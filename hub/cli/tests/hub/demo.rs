//! `seawall demo` from outside: the real binary, with nobody's help but its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{self, SEAWALL, within};

/// The machine may be busy, and a demo is five servers and a hub.
const LONG: Duration = Duration::from_secs(90);

/// A demo that runs.
pub(crate) struct Demo {
    pub(crate) hub: harness::Hub,
    pub(crate) key: String,
    said: Arc<Mutex<Vec<String>>>,
    /// Where it may keep its data.
    folder: TempDir,
}

impl Demo {
    pub(crate) fn start(args: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(SEAWALL)
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(args)
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, out) = (Arc::<Mutex<Vec<String>>>::default(), process.stdout.take().unwrap());
        let heard = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        let mut demo =
            Demo { hub: harness::Hub { process, address: String::new() }, key: String::new(), said, folder };
        within(LONG, "it says where it is", || demo.line("/login#").is_some());
        let link = demo.line("/login#").unwrap();
        let (address, key) = link.split_once("http://").unwrap().1.split_once("/login#").unwrap();
        (demo.hub.address, demo.key) = (address.to_owned(), key.to_owned());
        demo
    }

    /// A line that it has said, with these words in it.
    fn line(&self, words: &str) -> Option<String> {
        self.said.lock().unwrap().iter().find(|line| line.contains(words)).cloned()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.hub.ask(method, &format!("/api/v1{path}"), &self.key, &body)
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer["data"].clone()
    }

    fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer["data"].clone()
    }

    fn set(&self, name: &str, mood: &str) -> Value {
        self.must("POST", &format!("/demo/upstreams/{name}:set"), &json!({"mood": mood}))
    }

    fn upstream(&self, name: &str) -> Value {
        let all = self.get("/demo/upstreams");
        all.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
    }

    /// The open dead letters of the CRM that say this.
    fn letters(&self, code: &str) -> Vec<Value> {
        let page = self.get("/bridge/deadLetters?service=crm&page_size=200");
        let letters = page["deadLetters"].as_array().unwrap().clone();
        letters.into_iter().filter(|letter| self.whole(letter).to_string().contains(code)).collect()
    }

    fn whole(&self, letter: &Value) -> Value {
        self.get(&format!("/bridge/deadLetters/{}", letter["id"].as_str().unwrap()))
    }

    /// Ends it by a signal. What is left of it is nothing.
    fn end(mut self, signal: &str) {
        assert_eq!(data(self.folder.path()).len(), 1, "while it runs its data is there");
        let pid = self.hub.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut ended: Option<ExitStatus> = None;
        within(Duration::from_secs(30), "it ends", || {
            ended = self.hub.process.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(0), "{signal}");
        assert_eq!(data(self.folder.path()), BTreeSet::new(), "{signal}");
    }
}

fn data(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// HUB-11, HUB-6, HUB-7, PRM-1: with nobody touching it, a circuit opens and closes again, deliveries wait and none of them is
/// lost, dead letters gather in groups, and one group is replayed to its end. Ctrl-C ends it, and leaves nothing behind.
#[test]
fn hub_11_the_story_tells_itself() {
    let demo = Demo::start(&["--pace", "5", "--rate", "40"]);
    within(LONG, "the story comes to its end", || demo.line("the story pauses here").is_some());
    let told: Vec<Value> = demo.get("/demo/story").as_array().unwrap().clone();
    let words = [
        "warehouse is down",
        "the circuit of warehouse is open",
        "warehouse is back",
        "the circuit of warehouse is closed",
        "all waiting deliveries of warehouse are delivered",
        "dead letters in 3 groups",
        "a new release that knows the tier platinum",
        "the replay is done",
        "the story pauses here",
    ];
    assert_eq!(told.len(), words.len(), "{told:?}");
    for (told, words) in told.iter().zip(words) {
        assert!(told["line"].as_str().unwrap().contains(words), "{words}: {told}");
        assert!(demo.line(words).is_some(), "the terminal says so too: {words}");
    }
    let circuit = demo.get("/registry/services/warehouse/circuit");
    let states: Vec<&str> =
        circuit["history"].as_array().unwrap().iter().map(|moved| moved["state"].as_str().unwrap()).collect();
    assert!(circuit["state"] == "closed" && states.contains(&"open") && states[0] == "closed", "{circuit}");
    assert_eq!(demo.upstream("warehouse")["deadLetters"], 0, "what waits is not given up");
    let letters = demo.letters("unknownTier");
    let replayed =
        letters.iter().filter(|letter| demo.whole(letter)["replayed"]["state"] == "delivered").count();
    let line = demo.line("the replay is done").unwrap();
    assert!(replayed > 0 && line.contains(&format!("{replayed} of {replayed} delivered")), "{line}");
    for code in ["badCountry", "badPhone"] {
        assert!(!demo.letters(code).is_empty(), "{code} is left for whoever plays");
    }
    demo.end("-INT");
}

/// HUB-11, HUB-7: a sample service is broken and healed by its route, in every way; and what the tour says about the dead
/// letters works: the rule is mended, and the replay is rendered by the rule of today.
#[test]
fn hub_11_a_sample_service_is_broken_and_healed() {
    let demo = Demo::start(&["--no-story", "--rate", "60"]);
    let circuit = |name: &str, state: &str| {
        within(LONG, &format!("{name} is {state}"), || demo.upstream(name)["circuit"] == state);
    };
    for mood in ["failing", "down", "slow"] {
        assert_eq!(demo.set("warehouse", mood)["mood"], mood);
        circuit("warehouse", "open");
        within(LONG, "deliveries wait", || demo.upstream("warehouse")["waiting"].as_u64().unwrap() > 20);
        demo.set("warehouse", "healthy");
        circuit("warehouse", "closed");
        within(LONG, "all are delivered", || demo.upstream("warehouse")["waiting"].as_u64().unwrap() < 10);
    }
    assert_eq!(demo.upstream("warehouse")["deadLetters"], 0);
    demo.set("payments", "refusing");
    within(LONG, "dead letters", || demo.upstream("payments")["deadLetters"].as_u64().unwrap() > 0);
    demo.set("payments", "healthy");

    within(LONG, "a wrong country", || !demo.letters("badCountry").is_empty());
    let letter = demo.letters("badCountry")[0]["id"].as_str().unwrap().to_owned();
    let country = json!({"body": {
        "name": "{{ data.name }}", "email": "{{ data.email }}", "phone": "{{ data.phone }}", "tier": "{{ data.tier }}",
        "country": "{{ 'GB' if data.country == 'UK' else data.country }}",
    }});
    demo.must("PATCH", "/registry/rules/update-customers", &country);
    let replay =
        demo.must("POST", &format!("/bridge/deadLetters/{letter}:replay"), &json!({"mode": "render"}));
    let path = format!("/bridge/deliveries/{}", replay["delivery"].as_str().unwrap());
    within(LONG, "the replay is delivered", || demo.get(&path)["state"] == "delivered");
    demo.end("-TERM");
}

/// HUB-11, API-2, SEC-1: what can't be set is said field by field, a key that may only read sets nothing, it calls nobody but its
/// sample services, and a terminal that is closed ends the demo like Ctrl-C does.
#[test]
fn hub_11_a_wrong_mood_gets_a_clear_word() {
    let demo = Demo::start(&["--no-story", "--rate", "1"]);
    let (status, answer) = demo.ask("POST", "/demo/upstreams/mail:set", &json!({"mood": "sad"}));
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("mood")), "{answer}");
    let reason = answer["errors"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("healthy, slow, failing, down, refusing"), "{reason}");
    let down = json!({"mood": "down"});
    assert_eq!(demo.ask("POST", "/demo/upstreams/mail:set", &json!({})).0, 422);
    assert_eq!(demo.ask("POST", "/demo/upstreams/nobody:set", &down).0, 404);
    assert_eq!(demo.ask("POST", "/demo/upstreams/mail:heal", &down).0, 404);
    let made = demo.must("POST", "/registry/keys", &json!({"name": "watcher", "scopes": ["read"]}));
    let watcher = made["key"].as_str().unwrap();
    let set = "/api/v1/demo/upstreams/mail:set";
    assert_eq!(demo.hub.ask("GET", "/api/v1/demo/upstreams", watcher, "").0, 200);
    assert_eq!(demo.hub.ask("POST", set, watcher, &down.to_string()).0, 403);
    assert_eq!(demo.hub.ask("POST", set, "nobody's", &down.to_string()).0, 401);
    assert_eq!(demo.upstream("mail")["mood"], "healthy");
    let (_, document) = demo.hub.ask("GET", "/openapi.json", "", "");
    assert!(document["paths"].is_object() && !document.to_string().contains("/demo/"));
    // Systems with one loopback address only can't tell the sample services from others.
    if cfg!(target_os = "linux") {
        let elsewhere = json!({"name": "elsewhere", "address": format!("http://{}", demo.hub.address)});
        demo.must("POST", "/registry/services", &elsewhere);
        let tested = demo.must("POST", "/registry/services/elsewhere:test", &Value::Null);
        assert_eq!(tested["reached"], false, "it calls its sample services, and nobody else here: {tested}");
    }
    demo.end("-HUP");
}

/// HUB-11: a hub that is no demo has no switches.
#[test]
fn hub_11_a_hub_that_is_no_demo_has_no_such_routes() {
    let folder = TempDir::new().unwrap();
    let hub = harness::Hub::start(folder.path());
    for (method, path) in [
        ("GET", "/api/v1/demo/upstreams"),
        ("GET", "/api/v1/demo/story"),
        ("POST", "/api/v1/demo/upstreams/mail:set"),
    ] {
        let (status, answer) = hub.ask(method, path, harness::KEY, r#"{"mood":"down"}"#);
        assert_eq!((status, &answer["code"]), (404, &json!("notFound")), "{path}: {answer}");
    }
}

/// HUB-11: what makes no sense is refused before anything is started.
#[test]
fn hub_11_a_demo_that_makes_no_sense_is_refused() {
    for (args, word) in [
        (["--listen", "0.0.0.0:0"], "must be a loopback address"),
        (["--rate", "0"], "from 1 to 200"),
        (["--pace", "21"], "from 1 to 20"),
        (["--url", "http://x"], "`--url` applies only to commands that connect to a hub"),
    ] {
        let ran = Command::new(SEAWALL).arg("demo").args(args).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(2) && said.contains(word), "{args:?}: {said}");
    }
}
