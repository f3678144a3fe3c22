//! The commands beside `serve`, each against a running hub: once well, once wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod alerts;
mod alone;
mod bridge;
mod desk;
mod gateway;
mod newcomer;
mod registry;
mod sending;
mod talking;
mod waiting;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL};
use crate::peer::Peer;

/// What a command did.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    fn well(self) -> Self {
        assert_eq!(self.code, 0, "{}\n{}", self.out, self.err);
        self
    }

    /// It ended with this code, and stderr has all of these in it.
    #[track_caller]
    fn wrong(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in:\n{}", self.err);
        }
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.out);
        assert!(parsed.is_ok(), "no JSON: {}\n{}", self.out, self.err);
        parsed.unwrap()
    }

    #[track_caller]
    fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.out.contains(word), "no `{word}` in:\n{}", self.out);
        }
        self
    }
}

/// A command as somebody types it, with nothing of this process around it.
fn command(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(SEAWALL);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEAWALL_")) {
        command.env_remove(name);
    }
    command.args(args).env("SEAWALL_URL", url).env("SEAWALL_KEY", KEY);
    command
}

fn ran(command: &mut Command, input: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may end without having read anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// A hub, a peer that is registered as `billing`, a rule `all` that sends everything there, and a folder for files.
struct Scene {
    folder: TempDir,
    peer: Peer,
    hub: Hub,
}

impl Scene {
    fn new() -> Self {
        let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
        let hub = Hub::start(&folder.path().join("data"));
        let scene = Scene { folder, peer, hub };
        let policy =
            json!({"attempt_timeout": "2s", "breaker": {"consecutive_failures": 1_000}, "bulkhead": {}});
        scene.put("services", &json!({"name": "billing", "address": scene.peer.address, "policy": policy}));
        let schedule = json!({"base": "20ms", "cap": "100ms"});
        scene.put(
            "rules",
            &json!({"name": "all", "eventType": "*", "service": "billing", "delivery": schedule}),
        );
        scene
    }

    fn url(&self) -> String {
        format!("http://{}", self.hub.address)
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.fed(args, "")
    }

    /// With this on stdin.
    fn fed(&self, args: &[&str], input: &str) -> Ran {
        ran(&mut command(&self.url(), args), input)
    }

    /// What `--json` prints.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).well().json()
    }

    /// Puts something by the command line.
    #[track_caller]
    fn put(&self, noun: &str, value: &Value) -> Ran {
        self.fed(&[noun, "put", "-"], &value.to_string()).well()
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Sends an event with this id, and names its delivery.
    fn delivery(&self, id: &str) -> String {
        let data = json!({"id": id}).to_string();
        let sent = self.json(&["send", "order.created", "--id", id, "--data", &data]);
        sent["deliveries"][0].as_str().unwrap().to_owned()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
