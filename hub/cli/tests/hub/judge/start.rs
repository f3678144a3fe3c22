//! Killed while it starts, at each single call that changes a file: not by chance, but one after the other.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::log::Ack;
use super::power::need;
use super::sink::{PeerBehavior, Sink};
use super::{alone, chance, load, register, verdict};
use crate::harness::{Client, Hub, SEAWALL};

/// More calls than any start makes.
const CALLS_MAX: u32 = 2_000;

/// Starts the hub in copies of this folder and works with it, killed at the first call, at the second, and so on until the
/// work is done before it dies; each time it must start again in what is left, and pass. Says how many calls there were.
pub(super) fn killed_at_each_call<T>(
    prepared: &Path,
    work: impl Fn(&Hub) -> T,
    dead: impl Fn(),
    pass: impl Fn(&Hub, Option<T>),
) -> u32 {
    let shim = TempDir::new().unwrap();
    let (source, library) = (shim.path().join("dies_at.c"), shim.path().join("dies_at.so"));
    fs::write(&source, include_str!("dies_at.c")).unwrap();
    need(
        "cc",
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl"),
    );
    for call in 1..CALLS_MAX {
        let copy = TempDir::new().unwrap();
        need("cp", Command::new("cp").arg("-r").arg(prepared).arg(copy.path()));
        let data = copy.path().join(prepared.file_name().unwrap());
        let mut command = Hub::command(Path::new(SEAWALL), &data);
        command.env("LD_PRELOAD", &library).env("SEAWALL_DIES_AT", call.to_string());
        let first = Hub::ready(command.spawn().unwrap());
        let done = first.as_ref().map(&work);
        let lived = first.as_ref().is_some_and(answers);
        drop(first);
        dead();
        let hub = Hub::ready(Hub::command(Path::new(SEAWALL), &data).spawn().unwrap());
        pass(&hub.unwrap_or_else(|| panic!("killed at call {call}, it does not start again")), done);
        if lived {
            return call - 1;
        }
    }
    panic!("it is not done after {CALLS_MAX} calls");
}

/// A process that dies is gone from its sockets first.
fn answers(hub: &Hub) -> bool {
    Client::connect(&hub.address).and_then(|mut client| client.ask("GET", "/actuator/health", "")).is_ok()
}

/// PRM-1, SEC-2: killed anywhere in its first start, it starts again: tables, key and lock are there as a whole or not at all.
#[test]
fn prm_1_killed_at_each_call_of_its_first_start_it_starts_again() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let empty = folder.path().join("data");
    fs::create_dir(&empty).unwrap();
    let calls = killed_at_each_call(
        &empty,
        |_| (),
        || (),
        |hub, _| {
            assert_eq!(hub.post("/api/v1/bridge/events", &json!({"id": "a", "type": "a"})).0, 202);
        },
    );
    assert!(calls > 20, "only {calls} calls were seen");
}

/// PRM-1: killed anywhere in a later start, while it reads the log that a kill has left, it has all that was acknowledged.
#[test]
fn prm_1_killed_at_each_call_of_a_later_start_nothing_is_lost() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let hub = Hub::start(&data);
    for number in 0..20 {
        assert_eq!(hub.post("/api/v1/bridge/events", &json!({"id": number.to_string(), "type": "a"})).0, 202);
    }
    drop(hub);
    killed_at_each_call(
        &data,
        |_| (),
        || (),
        |hub, _| {
            for number in 0..20 {
                let (_, answer) =
                    hub.post("/api/v1/bridge/events", &json!({"id": number.to_string(), "type": "a"}));
                assert_eq!(answer["data"]["deduplicated"], json!(true), "{answer}");
            }
        },
    );
}

/// PRM-1, PRM-2: killed anywhere while it takes in events and delivers them, what was acknowledged ends delivered, under the
/// name that it had.
#[test]
fn prm_1_killed_at_each_call_while_it_works_nothing_is_lost() {
    let _alone = alone();
    let (seed, folder) = (chance::seed(), TempDir::new().unwrap());
    let (sink, data) = (Sink::start(seed, PeerBehavior::Kind), folder.path().join("data"));
    let hub = Hub::start(&data);
    register(&hub, &sink);
    drop(hub);
    let send = |hub: &Hub| -> Vec<Ack> {
        let mut connection = None;
        let ids = ["first", "second", "third"].into_iter();
        let acks = ids.filter_map(|id| {
            match load::send(&mut connection, &hub.address, &load::event(seed, id, 100)) {
                Ok((202, answer)) => Some(load::ack(id, &answer)),
                _ => None,
            }
        });
        acks.collect()
    };
    let calls = killed_at_each_call(
        &data,
        |hub| {
            let acks = send(hub);
            let ended =
                |ack: &Ack| ack.deliveries.iter().all(|delivery| verdict::has_ended(&hub.address, delivery));
            while !acks.iter().all(ended) {
                thread::sleep(Duration::from_millis(2));
            }
            acks
        },
        || {
            sink.next_life();
        },
        |hub, before| {
            let mut acks = before.unwrap_or_default();
            acks.extend(send(hub));
            let faults = verdict::of(&acks, || sink.take(), &hub.address, seed);
            assert!(acks.len() >= 3 && faults.is_empty(), "seed {seed}, {acks:?}: {faults:?}");
        },
    );
    assert!(calls > 20, "only {calls} calls were seen");
}
