//! When there are more clients than files.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::register;
use crate::harness::{Client, Hub, KEY, SEAWALL, within};
use crate::peer::Peer;

/// PRM-8: clients that only hold connections do not take the files that deliveries need.
#[test]
fn prm_8_idle_clients_leave_files_for_deliveries() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 96; exec \"$@\"", "sh", SEAWALL, "serve", "--listen", "127.0.0.1:0"])
        .args(["--allow-egress", "127.0.0.0/8", "--data-dir"])
        .arg(folder.path())
        .env("SEAWALL_ADMIN_KEY", KEY)
        .env("SEAWALL_LOG_LEVEL", "error")
        .stdout(Stdio::piped());
    let hub = Hub::ready(command.spawn().unwrap()).unwrap();
    register(&hub, &peer);
    let mut client = Client::connect(&hub.address).unwrap();
    client.ask("GET", "/actuator/health", "").unwrap();
    let idle: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(&hub.address).unwrap()).collect();
    let event = json!({"id": "A", "type": "a.b"}).to_string();
    let (status, said) = client.ask("POST", "/api/v1/bridge/events", &event).unwrap();
    assert_eq!(status, 202, "{said}");
    within(Duration::from_secs(10), "it is delivered", || peer.count() == 1);
    drop(idle);
}
