//! A hub that keeps its data in PostgreSQL.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use seawall_testkit::servers::Postgres;
use serde_json::json;
use tempfile::TempDir;

use super::{refusal, register};
use crate::harness::{Hub, KEY, SEAWALL, header, until};
use crate::observe::{OF_A_DATABASE, documented};
use crate::peer::Peer;

fn command(folder: &TempDir, url: &str) -> Command {
    let mut command = Hub::command(Path::new(SEAWALL), folder.path());
    command.env("SEAWALL_DATABASE", url);
    command
}

fn start(folder: &TempDir, url: &str) -> Hub {
    Hub::ready(command(folder, url).spawn().unwrap()).unwrap()
}

/// HUB-15, PRM-8: a database that is away ends nothing: the gateway goes on, events are refused within the time with the advice to
/// come back, readiness says why, and all is as before when the database answers again.
#[test]
fn hub_15_a_database_that_is_away_ends_nothing() {
    let (server, folder, peer) = (Postgres::start().unwrap(), TempDir::new().unwrap(), Peer::start());
    let mut hub = start(&folder, server.database().unwrap().url());
    register(&hub, &peer);
    for (number, (away, back)) in [
        (Postgres::pause as fn(&Postgres), Postgres::resume as fn(&Postgres)),
        (Postgres::kill, Postgres::start_again),
        (Postgres::stop, Postgres::start_again),
    ]
    .into_iter()
    .enumerate()
    {
        away(&server);
        let began = Instant::now();
        let event = json!({"id": format!("away-{number}"), "type": "order.created", "data": {}});
        let refused = hub.with("POST", "/api/v1/bridge/events", &[], &event);
        assert_eq!((refused.status, &refused.body["code"]), (503, &json!("store")), "{}", refused.body);
        assert_eq!(header(&refused.head, "retry-after"), Some("1"));
        assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
        until("it is not ready", || {
            let (status, answer) = hub.ask("GET", "/actuator/health/readiness", KEY, "");
            status == 503 && answer["message"].as_str().unwrap().contains("has not answered for")
        });
        let call = json!({"method": "GET", "path": "/x"});
        let called = hub.with("POST", "/api/v1/gateway/services/billing:call", &[], &call);
        assert_eq!(called.status, 200, "{}", called.body);
        assert_eq!(hub.ask("GET", "/actuator/health/liveness", KEY, "").0, 200);
        let metrics = hub.with("GET", "/metrics", &[], &json!(null)).text;
        assert!(metrics.contains("seawall_database_up 0"), "{metrics}");
        let of_a_database = documented().into_iter().filter(|(name, _)| name.starts_with(OF_A_DATABASE));
        let exported: Vec<String> = of_a_database.map(|(_, exported)| exported).collect();
        assert_eq!(exported.len(), 5, "{exported:?}");
        for exported in exported {
            assert!(metrics.contains(&format!("# TYPE {exported} ")), "{exported} is not in\n{metrics}");
            assert!(metrics.contains(&format!("# HELP {exported} ")), "{exported} has no help");
        }

        back(&server);
        let began = Instant::now();
        until("it takes events again", || hub.post("/api/v1/bridge/events", &event).0 == 202);
        assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
        until("it is ready", || hub.ask("GET", "/actuator/health/readiness", KEY, "").0 == 200);
        assert!(hub.process.try_wait().unwrap().is_none(), "it has ended");
    }
    let ids = [0, 1, 2].map(|number| format!("/api/v1/bridge/deliveries?event=away-{number}"));
    for path in ids {
        until("it is delivered", || hub.get(&path)["deliveries"][0]["state"] == "delivered");
    }
    let metrics = hub.with("GET", "/metrics", &[], &json!(null)).text;
    for name in ["up 1", "beat_age_seconds", "round_trip_seconds", "connections", "oldest_unit_age_seconds"] {
        assert!(metrics.contains(&format!("seawall_database_{name}")), "{name}: {metrics}");
    }
}

/// Short names for what happens to a server.
trait Fate {
    fn pause(&self);
    fn resume(&self);
    fn kill(&self);
    fn stop(&self);
    fn start_again(&self);
}

impl Fate for Postgres {
    fn pause(&self) {
        self.control().pause().unwrap();
    }

    fn resume(&self) {
        self.control().resume().unwrap();
    }

    fn kill(&self) {
        self.control().kill().unwrap();
    }

    fn stop(&self) {
        self.control().stop().unwrap();
    }

    fn start_again(&self) {
        self.control().start().unwrap();
    }
}

/// HUB-15, SEC-2: a hub with another `secret.key` is refused, and so is one without it; one that shall have a new one is not.
#[test]
fn hub_15_another_secret_key_is_refused() {
    let (database, peer) = (Postgres::shared().database().unwrap(), Peer::start());
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let hub = start(&folder, database.url());
    register(&hub, &peer);
    hub.must("POST", "/api/v1/ops/secrets:rotate", &json!({}));
    drop(hub);
    drop(start(&folder, database.url()));
    let missing = refusal(&command(&other, database.url()).output().unwrap());
    assert!(missing.contains("`secret.key` is missing"), "{missing}");
    let unused = Postgres::shared().database().unwrap();
    drop(start(&other, unused.url()));
    let wrong = refusal(&command(&other, database.url()).output().unwrap());
    assert!(wrong.contains("is not the one that the database was used with"), "{wrong}");
    let anew = command(&other, database.url()).arg("--new-secret-key").spawn().unwrap();
    drop(Hub::ready(anew).unwrap());
    drop(start(&other, database.url()));
}

/// HUB-15: a second hub on the same database is refused by name, and a folder belongs to one hub.
#[test]
fn hub_15_a_second_hub_is_refused() {
    let (database, more) = (Postgres::shared().database().unwrap(), Postgres::shared().database().unwrap());
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let hub = start(&folder, database.url());
    fs::copy(folder.path().join("secret.key"), other.path().join("secret.key")).unwrap();
    let second = refusal(&command(&other, database.url()).output().unwrap());
    assert!(second.contains("is in use by the hub"), "{second}");
    let shared = refusal(&command(&folder, more.url()).output().unwrap());
    assert!(shared.contains("another process uses it"), "{shared}");
    assert_eq!(hub.get("/actuator/health")["state"], "up");
}

/// HUB-15, SEC-2: a password comes from the environment or from a file, is refused on the command line, and shown nowhere.
#[test]
fn hub_15_a_password_is_shown_nowhere() {
    let folder = TempDir::new().unwrap();
    let seawall = |more: &[&str], variables: &[(&str, &str)]| {
        let mut command = Hub::command(Path::new(SEAWALL), folder.path());
        command.env_remove("SEAWALL_DATABASE").args(more).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(!output.status.success() && !said.contains("s3cret"), "{said}");
        said
    };
    let said = seawall(&["--database", "postgres://u:s3cret@127.0.0.1:1/x"], &[]);
    assert!(said.contains("every user of this machine can read"), "{said}");
    for url in ["postgres://u:s3cret@127.0.0.1:1/x", "postgres://u:s3cret@h:port/x", "u:s3cret@h"] {
        seawall(&[], &[("SEAWALL_DATABASE", url)]);
    }
    let said = seawall(&["--database", "postgres://u@127.0.0.1:1/x"], &[("PGPASSWORD", "s3cret")]);
    assert!(said.contains("can't connect to the database `127.0.0.1:1/x`"), "{said}");
    let file = folder.path().join("no-such-file");
    let file = file.to_str().unwrap();
    let said = seawall(&["--database", "postgres://u@127.0.0.1:1/x", "--database-password-file", file], &[]);
    assert!(said.contains("can't read the password of the database"), "{said}");
    let mut help = Command::new(SEAWALL);
    help.args(["serve", "--help"]).env("SEAWALL_DATABASE", "postgres://u:s3cret@h/x");
    let help = String::from_utf8(help.output().unwrap().stdout).unwrap();
    assert!(help.contains("SEAWALL_DATABASE") && !help.contains("s3cret"), "{help}");
}
