//! The data folder: what becomes of it when a hub stops, when the database is gone from it, and when a page of it is damaged.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, SEAWALL, until};

const EVENTS: &str = "/api/v1/bridge/events";

fn send(hub: &Hub, id: &str) -> (u16, Value) {
    hub.post(EVENTS, &json!({"id": id, "type": "order.created", "data": {"note": "x".repeat(500)}}))
}

/// Ends it in order.
fn stop(mut hub: Hub) {
    let process = hub.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert!(hub.process.wait().unwrap().success());
}

/// Why it does not start. All files are as they were.
fn does_not_start(data: &Path) -> String {
    let files = || -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<_> = fs::read_dir(data)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        found.sort();
        found
    };
    let before = files();
    let log = TempDir::new().unwrap();
    let log = log.path().join("log");
    let mut command = Hub::command(Path::new(SEAWALL), data);
    let process = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    assert!(Hub::ready(process).is_none(), "it has started");
    let said = fs::read_to_string(&log).unwrap();
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert!(files() == before, "{:?} became {:?}: {said}", names(&before), names(&files()));
    said
}

/// PRM-1. Trap "a data folder whose database is gone": a hub does not begin anew beside the log, the key or the lock of another
/// database. It says what is missing and what to do, and changes nothing; with the database back, all is there.
#[test]
fn prm_1_a_folder_whose_database_is_gone_is_refused() {
    let folder = TempDir::new().unwrap();
    let (data, away) = (folder.path().join("data"), folder.path().join("away"));
    fs::create_dir(&away).unwrap();
    let hub = Hub::start(&data);
    for n in 0..20 {
        assert_eq!(send(&hub, &format!("e-{n}")).0, 202);
    }
    drop(hub);
    assert!(fs::metadata(data.join("seawall.db-wal")).unwrap().len() > 0, "it was killed");

    fs::rename(data.join("seawall.db"), away.join("seawall.db")).unwrap();
    let said = does_not_start(&data);
    for word in ["`seawall.db` is missing", "`seawall.db-wal`", "`secret.key`", "seawall restore"] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    fs::write(data.join("seawall.db"), "").unwrap();
    assert!(does_not_start(&data).contains("`seawall.db` is empty"));

    // With less and less beside it.
    fs::rename(data.join("seawall.db-wal"), away.join("seawall.db-wal")).unwrap();
    assert!(does_not_start(&data).contains("`secret.key`"));
    fs::rename(data.join("secret.key"), away.join("secret.key")).unwrap();
    let said = does_not_start(&data);
    assert!(said.contains("`lock`") && !said.contains("`secret.key`"), "{said}");

    for name in ["seawall.db", "seawall.db-wal", "secret.key"] {
        fs::rename(away.join(name), data.join(name)).unwrap();
    }
    let hub = Hub::start(&data);
    for n in 0..20 {
        assert_eq!(send(&hub, &format!("e-{n}")).1["data"]["deduplicated"], json!(true));
    }
}

/// HUB-9: a hub that is asked to stop leaves all in the database, and nothing in its log.
#[test]
fn hub_9_an_orderly_stop_folds_the_log_back() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let hub = Hub::start(&data);
    for n in 0..50 {
        assert_eq!(send(&hub, &format!("e-{n}")).0, 202);
    }
    // Connections that only read are open then, too.
    assert_eq!(hub.all(EVENTS, "events", 10).len(), 50);
    stop(hub);
    let log = fs::metadata(data.join("seawall.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "bytes are left in the log");
    let alone = folder.path().join("alone");
    fs::create_dir(&alone).unwrap();
    fs::copy(data.join("seawall.db"), alone.join("seawall.db")).unwrap();
    let database = rusqlite::Connection::open(alone.join("seawall.db")).unwrap();
    let count: u32 = database.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 50);
}

/// Overwrites a page of the table of events that holds this text, as a bad disk would.
fn damage(database: &Path, text: &str) {
    // Whoever closes it as the last one folds its log back.
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.query_row("PRAGMA quick_check", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = fs::read(database).unwrap();
    let page_size = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    // The first byte says that it is a leaf of a table.
    let mut pages = bytes.chunks_mut(page_size).skip(1).filter(|page| page[0] == 0x0D);
    let page = pages.find(|page| page.windows(text.len()).any(|found| found == text.as_bytes())).unwrap();
    page.fill(0xA5);
    fs::write(database, bytes).unwrap();
}

/// PRM-8. Trap "a damaged page, and it goes on acknowledging": once a page can't be read, the hub is not ready and takes nothing
/// more, and says everywhere that a backup is needed. That holds for a start after it, too.
#[test]
fn prm_8_a_damaged_page_ends_readiness_and_acknowledgements() {
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let hub = Hub::start(&data);
    for n in 0..200 {
        assert_eq!(send(&hub, &format!("e-{n}")).0, 202);
    }
    stop(hub);
    damage(&data.join("seawall.db"), "e-77");
    let mut command = Hub::command(Path::new(SEAWALL), &data);
    let hub = Hub::ready(command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap()).unwrap();
    assert_eq!(send(&hub, "before").0, 202, "nobody has seen it yet");

    let is_damaged = |(status, answer): (u16, Value)| {
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!((status, &answer["code"]), (503, &json!("damaged")), "{answer}");
        assert!(message.contains("backup"), "{answer}");
    };
    let ask = |path: &str| hub.ask("GET", path, crate::harness::KEY, "");
    is_damaged(ask("/api/v1/bridge/events/e-77"));
    until("it is not ready", || ask("/actuator/health/readiness").0 == 503);
    is_damaged(ask("/actuator/health/readiness"));
    is_damaged(send(&hub, "after"));
    let lines = fs::read_to_string(&log).unwrap();
    let told: Vec<&str> = lines.lines().filter(|line| line.contains("[Store][Read] Failed!")).collect();
    assert_eq!(told.len(), 1, "{lines}");
    assert!(told[0].contains("ERROR") && told[0].contains("backup"), "{lines}");
    assert_eq!(ask("/actuator/health/liveness").0, 200, "to start it again would mend nothing");
    drop(hub);

    let hub = Hub::start(&data);
    let ask = |path: &str| hub.ask("GET", path, crate::harness::KEY, "");
    is_damaged(ask("/actuator/health/readiness"));
    is_damaged(send(&hub, "later"));
    assert_eq!(ask("/api/v1/bridge/events/e-3").0, 200, "what can be read is shown");
}
