//! A copy of everything, and a hub made of it again.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{refusal, register, seawall, well};
use crate::harness::{Client, Hub, KEY, SEAWALL, header, until};
use crate::peer::{Peer, PeerBehavior};

/// How many requests the peer got about an event, and whether all of them had the secret.
fn got(peer: &Peer, id: &str) -> (usize, bool) {
    let got = peer.requests();
    let about: Vec<_> = got.iter().filter(|got| got.header("seawall-event") == Some(id)).collect();
    (about.len(), about.iter().all(|got| got.header("authorization") == Some("Bearer t0p-s3cret")))
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// HUB-9, design 24: a copy that is made under load holds all that was acknowledged before it began; a hub that is made of it
/// delivers what was not delivered, opens its secrets, and gives out no name a second time.
#[test]
fn hub_9_a_copy_made_under_load_comes_back_whole() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let (data, copy, anew) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("anew"));
    let hub = Hub::start(&data);
    register(&hub, &peer);
    // What is under way when the copy is made.
    peer.behave(PeerBehavior::Respond(503));
    let (acknowledged, stop) = (Mutex::new(Vec::<(String, Value)>::new()), AtomicBool::new(false));
    let before = std::thread::scope(|scope| {
        let load = |client: usize| {
            let mut connection = Client::connect(&hub.address).unwrap();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let id = format!("evt-{client}-{number}");
                let event = json!({"id": id, "type": "a.b", "data": {"text": "x".repeat(500)}});
                let (status, answer) =
                    connection.ask("POST", "/api/v1/bridge/events", &event.to_string()).unwrap();
                assert_eq!(status, 202, "{answer}");
                acknowledged.lock().unwrap().push((id, answer["data"]["deliveries"][0].clone()));
            }
        };
        for client in 0..4 {
            scope.spawn(move || load(client));
        }
        until("some events are acknowledged", || acknowledged.lock().unwrap().len() > 300);
        let before = acknowledged.lock().unwrap().clone();
        let said = well(&seawall("backup", &copy, &data, &["--with-secrets"]));
        assert!(said.contains("every secret"), "{said}");
        stop.store(true, Ordering::Relaxed);
        before
    });
    assert!(acknowledged.lock().unwrap().len() > before.len(), "it was under load");
    drop(hub);
    #[cfg(unix)]
    assert_eq!(
        [mode(&copy), mode(&copy.join("seawall.db")), mode(&copy.join("secret.key"))],
        [0o700, 0o600, 0o600]
    );

    let said = well(&seawall("restore", &copy, &anew, &[]));
    assert!(said.contains("sent again"), "{said}");
    peer.behave(PeerBehavior::Respond(200));
    let hub = Hub::start(&anew);
    for (id, delivery) in before.iter().step_by(7) {
        hub.get(&format!("/api/v1/bridge/events/{id}"));
        let path = format!("/api/v1/bridge/deliveries/{}", delivery.as_str().unwrap());
        assert_eq!(hub.with("GET", &path, &[], &Value::Null).status, 404, "names are given out anew");
    }
    hub.must("POST", "/api/v1/registry/services/billing/circuit:reset", &json!({}));
    let (last, _) = before.last().unwrap();
    until("what was under way is delivered", || got(&peer, last).0 > 0);
    assert!(got(&peer, last).1, "with its secret");
    let names = hub.send(&json!({"id": "new", "type": "a.b"}));
    assert!(acknowledged.lock().unwrap().iter().all(|(_, name)| *name != names[0]));
}

/// HUB-9, SEC-2: a copy is without the key unless somebody says so, and says so. A hub does not start without its key and
/// pretend that nothing is missing.
#[test]
fn sec_2_a_copy_without_the_key_needs_it_back() {
    let (folder, peer) = (TempDir::new().unwrap(), Peer::start());
    let (data, copy, anew) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("anew"));
    let hub = Hub::start(&data);
    register(&hub, &peer);
    drop(hub);
    // Nobody uses the folder.
    assert!(well(&seawall("backup", &copy, &data, &[])).contains("does not include `secret.key`"));
    assert!(!copy.join("secret.key").exists());
    assert!(well(&seawall("restore", &copy, &anew, &[])).contains("copy the one from its time to"));
    let mut start = Hub::command(SEAWALL.as_ref(), &anew);
    let output = start.stderr(Stdio::piped()).output().unwrap();
    assert!(refusal(&output).contains("`secret.key` is missing"), "{output:?}");
    assert!(!anew.join("secret.key").exists());
    fs::copy(data.join("secret.key"), anew.join("secret.key")).unwrap();
    let hub = Hub::start(&anew);
    let ids = hub.send(&json!({"id": "a", "type": "a.b"}));
    hub.wait_for(&ids[0], "delivered");
    assert_eq!(got(&peer, "a"), (1, true));
    drop(hub);

    // If it is lost, that can be said.
    fs::remove_file(anew.join("secret.key")).unwrap();
    let mut start = Hub::command(SEAWALL.as_ref(), &anew);
    let hub = Hub::ready(start.arg("--new-secret-key").spawn().unwrap()).unwrap();
    register(&hub, &peer);
    let ids = hub.send(&json!({"id": "b", "type": "a.b"}));
    hub.wait_for(&ids[0], "delivered");
    assert_eq!(got(&peer, "b"), (1, true));
}

/// SEC-1: a copy does not know which sessions were ended, so in a hub that is made of it all are: also one that somebody has logged
/// out of, before the copy or after it. Whoever logs in there is in.
#[test]
fn sec_1_no_session_from_before_is_good_in_a_restored_hub() {
    let folder = TempDir::new().unwrap();
    let (data, copy, anew) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("anew"));
    let hub = Hub::start(&data);
    let login = |hub: &Hub| {
        let begun = hub.call("POST", "/login", &[], &format!("key={KEY}"));
        header(&begun.head, "set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let sees = |hub: &Hub, cookie: &str| hub.call("GET", "/services", &[("cookie", cookie)], "").status;
    let (ended, open) = (login(&hub), login(&hub));
    let page = hub.call("GET", "/services", &[("cookie", &ended)], "").text;
    let token = page.split_once("data-csrf=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let form = format!("_csrf={token}");
    assert_eq!(hub.call("POST", "/logout", &[("cookie", &ended)], &form).status, 303);
    assert_eq!((sees(&hub, &ended), sees(&hub, &open)), (303, 200));
    well(&seawall("backup", &copy, &data, &["--with-secrets"]));
    drop(hub);
    well(&seawall("restore", &copy, &anew, &[]));
    let hub = Hub::start(&anew);
    assert_eq!((sees(&hub, &ended), sees(&hub, &open)), (303, 303));
    let fresh = login(&hub);
    assert_eq!(sees(&hub, &fresh), 200);
}

/// HUB-9: nothing is written over, no folder in use is touched, and what is damaged or newer is refused.
#[test]
fn hub_9_what_can_not_be_copied_or_restored_is_refused() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (data, copy) = (at("data"), at("copy"));
    assert!(refusal(&seawall("backup", &copy, &data, &[])).contains("there is no `seawall.db`"));
    assert!(!copy.exists());
    let hub = Hub::start(&data);
    for number in 0..200 {
        hub.send(&json!({"id": number.to_string(), "type": "a.b"}));
    }
    well(&seawall("backup", &copy, &data, &[]));
    for target in [&copy, &data] {
        assert!(refusal(&seawall("backup", target, &data, &[])).contains("new or empty"));
        assert!(refusal(&seawall("restore", &copy, target, &[])).contains("new or empty"));
    }
    drop(hub);

    fs::create_dir(at("taken")).unwrap();
    let lock = fs::File::create(at("taken").join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(refusal(&seawall("restore", &copy, &at("taken"), &[])).contains("another process uses it"));
    drop(lock);
    // What an attempt before has left is no obstacle.
    fs::write(at("taken").join("seawall.db.unfinished"), b"half").unwrap();
    well(&seawall("restore", &copy, &at("taken"), &[]));

    let spoilt = |name: &str, spoil: &dyn Fn(&Path)| {
        fs::create_dir(at(name)).unwrap();
        fs::copy(copy.join("seawall.db"), at(name).join("seawall.db")).unwrap();
        spoil(&at(name).join("seawall.db"));
        let output = seawall("restore", &at(name), &at(&format!("from {name}")), &[]);
        let left: Vec<_> = fs::read_dir(at(&format!("from {name}")))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(left.iter().all(|left| left == "lock"), "it takes up no room: {left:?}");
        refusal(&output)
    };
    let newer = spoilt("newer", &|path| {
        Connection::open(path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    });
    assert!(newer.contains("newer Seawall"), "{newer}");
    let damaged = spoilt("damaged", &|path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2 / 4_096 * 4_096;
        bytes[middle..middle + 4_096].fill(0xAA);
        fs::write(path, bytes).unwrap();
    });
    assert!(damaged.contains("damaged") || damaged.contains("malformed"), "{damaged}");
    let truncated = spoilt("truncated", &|path| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    });
    assert!(truncated.contains("damaged") || truncated.contains("malformed"), "{truncated}");
    let other =
        spoilt("other", &|path| fs::write(path, b"not a database, but long enough to be one").unwrap());
    assert!(other.contains("not a database of the hub"), "{other}");
    fs::create_dir(at("half")).unwrap();
    fs::copy(copy.join("seawall.db"), at("half").join("seawall.db.unfinished")).unwrap();
    assert!(refusal(&seawall("restore", &at("half"), &at("x"), &[])).contains("the backup is incomplete"));
}

/// HUB-9, PRM-1: the folder of a hub is no backup while a part of what it has acknowledged is in its log: that part would be
/// missing, and nobody would be told.
#[test]
fn prm_1_the_folder_of_a_hub_is_not_taken_for_a_backup() {
    let folder = TempDir::new().unwrap();
    let (data, raw, anew) =
        (folder.path().join("data"), folder.path().join("raw"), folder.path().join("anew"));
    let hub = Hub::start(&data);
    hub.send(&json!({"id": "a", "type": "a.b"}));
    // Killed, so that the log stays as it is; then copied as people do.
    drop(hub);
    fs::create_dir(&raw).unwrap();
    for entry in fs::read_dir(&data).unwrap().flatten() {
        fs::copy(entry.path(), raw.join(entry.file_name())).unwrap();
    }
    let said = refusal(&seawall("restore", &raw, &anew, &[]));
    assert!(said.contains("seawall.db-wal") && said.contains("seawall backup"), "{said}");
    assert!(!anew.exists());
    well(&seawall("backup", &folder.path().join("copy"), &raw, &[]));
    well(&seawall("restore", &folder.path().join("copy"), &anew, &[]));
    Hub::start(&anew).get("/api/v1/bridge/events/a");
}

/// SEC-2: a database that is made of a copy is for its owner to read and to write, whatever became of the copy meanwhile.
#[cfg(unix)]
#[test]
fn sec_2_what_is_restored_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let (data, copy, anew) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("anew"));
    drop(Hub::start(&data));
    well(&seawall("backup", &copy, &data, &["--with-secrets"]));
    for (name, meanwhile) in [("seawall.db", 0o444), ("secret.key", 0o644)] {
        fs::set_permissions(copy.join(name), fs::Permissions::from_mode(meanwhile)).unwrap();
    }
    well(&seawall("restore", &copy, &anew, &[]));
    assert_eq!([mode(&anew.join("seawall.db")), mode(&anew.join("secret.key"))], [0o600, 0o600]);
    drop(Hub::start(&anew));
}
