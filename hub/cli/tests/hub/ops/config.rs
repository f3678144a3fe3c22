//! Settings in a file, and while it changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Hub, KEY, SEAWALL, until};
use crate::peer::Peer;

fn command(config: &Path, log: &Path) -> Command {
    let mut command = Command::new(SEAWALL);
    let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    command
        .args(["serve", "--config"])
        .arg(config)
        .env("SEAWALL_ADMIN_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(log);
    command
}

/// HUB-9: a hub runs by its file. What can change while it runs does, within a second or at SIGHUP: private addresses, the log,
/// how long what is kept. What can't is named, and a file with mistakes changes nothing.
#[test]
fn hub_9_settings_change_while_it_runs() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let (config, log) = (folder.path().join("seawall.toml"), folder.path().join("log"));
    let data = format!("data_dir = {:?}\n", folder.path().join("data"));
    let write = |text: &str| {
        // Whole or not at all, as editors do.
        fs::write(folder.path().join("new"), format!("{data}{text}")).unwrap();
        fs::rename(folder.path().join("new"), &config).unwrap();
    };
    let said =
        |wanted: &str| fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains(wanted)).count();
    write("listen = \"127.0.0.1:0\"\n");
    let hub = Hub::ready(command(&config, &log).spawn().unwrap()).unwrap();
    hub.must("POST", "/api/v1/registry/services", &json!({"name": "billing", "address": peer.address}));
    let test = || hub.must("POST", "/api/v1/registry/services/billing:test", &json!({})).to_string();
    assert!(peer.requests().is_empty() && test().contains("private"), "{}", test());

    write("listen = \"127.0.0.1:0\"\nallow_egress = [\"127.0.0.0/8\"]\n[keep]\naudit = \"2d\"\n");
    until("its address is allowed", || said("changed=\"allow_egress, keep.audit\"") == 1);
    test();
    assert_eq!(peer.requests().len(), 1);

    write("listen = \"127.0.0.1:1\"\nallow_egress = []\n[log]\nlevel = \"debug\"\nformat = \"json\"\n");
    until("it is told what needs a restart", || said("needsRestart=\"listen, log.format\"") == 1);
    assert!(test().contains("private"));
    hub.send(&json!({"id": "a", "type": "a.b"}));
    until("every event has a line", || said("DEBUG [") > 0);

    write("listen = \"127.0.0.1:1\"\nallow_egress = [\"any\"]\nlog = 7\n");
    // The alert about it repeats the line, so the level is asked for too.
    until("it is told what is wrong", || said("ERROR [Config][Reload] Failed!") == 1);
    let places = ["seawall.toml:3:17: allow_egress: `any`", "seawall.toml:4:7: log: `7` stands here"];
    assert_eq!(places.map(said), [1, 1]);
    let before = said("ERROR [Config][Reload]");
    let pid = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    until("it looks when it is asked to", || said("ERROR [Config][Reload]") > before);
    assert!(hub.get("/actuator/health/liveness")["state"] == "up");
}

/// HUB-9: whoever asks a hub without a file to read it again learns that there is none, and the hub works on.
#[test]
fn hub_9_a_hub_without_a_file_survives_a_reload() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let mut command = Hub::command(SEAWALL.as_ref(), &folder.path().join("data"));
    let hub = Hub::ready(command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap()).unwrap();
    let pid = hub.process.id().to_string();
    until("it has heard it", || {
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        fs::read_to_string(&log).unwrap().contains("there is no settings file to reload")
    });
    assert!(hub.get("/actuator/health/liveness")["state"] == "up");
}

/// HUB-9, API-2: with mistakes in its file a hub does not start, and says all of them, each with its place.
#[test]
fn api_2_a_file_with_mistakes_is_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    let (config, log) = (folder.path().join("seawall.toml"), folder.path().join("log"));
    fs::write(&config, "listen = 80\n[logs]\nlevel = \"loud\"\n").unwrap();
    assert_eq!(command(&config, &log).status().unwrap().code(), Some(2), "a file that is wrong");
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("seawall.toml:1:10: listen: `80`: must be an IP address"), "{said}");
    assert!(said.contains("seawall.toml:2:2: logs: unknown setting; did you mean `log`?"), "{said}");
    fs::remove_file(&config).unwrap();
    assert!(Hub::ready(command(&config, &log).spawn().unwrap()).is_none());
    assert!(fs::read_to_string(&log).unwrap().contains("can't read"));
}
