//! Replays of many dead letters: each is sent once, whatever becomes of the hub meanwhile, and whoever halts them is obeyed.
//!
//! The peer refuses until there are enough dead letters, and is then healed. What came before that is forgotten, so that every
//! arrival that is left is a replay or a fresh event.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chance::{self, Chance};
use super::sink::{Arrival, PeerBehavior, Sink};
use super::trial::{Folder, Ground};
use super::{alone, times};
use crate::harness::{Client, Hub, Reply, SEAWALL, within};

const LETTERS: &str = "/api/v1/bridge/deadLetters";
const OPERATIONS: &str = "/api/v1/ops/operations";
const SERVICE: &str = "/api/v1/registry/services/peer";
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after a pause when no more replays may come.
const PEACE: Duration = Duration::from_secs(1);
/// The maximum number of replays that were started and not attempted.
const AHEAD: u64 = 32;
/// Everywhere that a dead letter can stand.
const STANDINGS: [&str; 6] = ["open", "replaying", "delivered", "failedAgain", "parked", "deleted"];

/// A hub with dead letters, and the peer that has refused them.
struct Desk {
    ground: Folder,
    hub: Hub,
    sink: Sink,
    /// The dead letters, and the event of each.
    letters: BTreeMap<String, String>,
    seed: u64,
    chance: Chance,
    /// The longest time that anything may take.
    patience: Duration,
}

impl Desk {
    /// Makes dead letters of a peer that has recovered by now.
    fn new(count: usize, policy: &Value) -> Self {
        let (seed, ground) = (chance::seed(), Folder::new());
        let (sink, hub) = (Sink::start(seed, PeerBehavior::REFUSING), Hub::ready(spawn(&ground)).unwrap());
        let service =
            json!({"name": "peer", "address": format!("http://{}", sink.address()), "policy": policy});
        hub.must("POST", "/api/v1/registry/services", &service);
        let rule = json!({"name": "all", "eventType": "*", "service": "peer", "method": "POST", "path": "/all/{{ id }}"});
        hub.must("POST", "/api/v1/registry/rules", &rule);
        let letters = refused(&hub.address, count);
        let patience = PATIENCE + Duration::from_millis(20) * count as u32;
        within(patience, "all are dead letters", || open_in_groups(&hub) == count as u64);
        sink.be(PeerBehavior::Kind);
        sink.take();
        let chance = Chance::new(seed ^ 0x9E3B);
        Desk { ground, hub, sink, letters, seed, chance, patience }
    }

    /// Killed with -9, whatever it does.
    fn kill(&mut self) {
        self.ground.crash(&mut self.hub.process);
        self.sink.next_life();
    }

    fn start_again(&mut self) {
        self.hub = Hub::ready(spawn(&self.ground)).unwrap();
    }

    /// Begins a replay of all.
    fn replay_all(&self, rate: u32, canary: bool) -> String {
        let mut body = json!({"filter": {"service": "peer"}, "ratePerSecond": rate});
        if !canary {
            body["canary"] = json!(false);
        }
        name(&self.hub.must("POST", &format!("{LETTERS}:replay"), &body)["id"])
    }

    fn operation(&self, id: &str) -> Value {
        self.hub.get(&format!("{OPERATIONS}/{id}"))
    }

    fn steer(&self, id: &str, verb: &str) -> Value {
        self.hub.must("POST", &format!("{OPERATIONS}/{id}:{verb}"), &Value::Null)
    }

    /// Waits until work stands there, and nothing of it is under way.
    fn ended(&self, id: &str, state: &str) -> Value {
        let mut operation = Value::Null;
        let began = Instant::now();
        while operation["state"] != state || operation["progress"]["underWay"] != 0 {
            assert!(began.elapsed() < self.patience, "seed {}: it is not {state}: {operation}", self.seed);
            thread::sleep(Duration::from_millis(20));
            operation = self.operation(id);
        }
        operation
    }

    /// Waits until this many deliveries have come.
    fn arrived(&self, count: usize) {
        within(self.patience, "so many have come", || self.sink.count() >= count);
    }

    /// A fresh event is delivered: whatever was to be sent before it has had its time.
    fn fence(&self, id: &str) {
        let sent = self.hub.send(&json!({"id": id, "type": "a.b", "data": {}}));
        self.hub.wait_for(&sent[0], "delivered");
    }

    /// Every dead letter was replayed once, or never and is open; what arrived is what was replayed; the counts of the groups are
    /// what a list says. Says how many were replayed, and how many of these were given up.
    fn judge(&self) -> (usize, usize) {
        let seed = self.seed;
        let deliveries = self.hub.all("/api/v1/bridge/deliveries", "deliveries", 500);
        let mut replays: HashMap<String, Vec<&Value>> = HashMap::new();
        for delivery in deliveries.iter().filter(|delivery| delivery["replayOf"].is_string()) {
            replays.entry(name(&delivery["replayOf"])).or_default().push(delivery);
        }
        let all = self.hub.all(&format!("{LETTERS}?standing={}", STANDINGS.join(",")), "deadLetters", 500);
        let found: HashMap<String, &Value> = all.iter().map(|letter| (name(&letter["id"]), letter)).collect();
        let seen = self.sink.seen();
        let mut failed = 0;
        for letter in self.letters.keys() {
            let stands = found.get(letter).unwrap_or_else(|| panic!("seed {seed}: {letter} is gone"));
            let Some(made) = replays.get(letter) else {
                assert_eq!(stands["standing"], "open", "seed {seed}: {stands}");
                continue;
            };
            let [replay] = made[..] else { panic!("seed {seed}: {letter} was replayed as {made:?}") };
            let arrivals = seen.get(&name(&replay["id"])).map_or(&[][..], Vec::as_slice);
            failed += usize::from(replay["state"] == "deadLettered");
            let expected = match replay["state"].as_str().unwrap() {
                "delivered" => {
                    let taken = arrivals.iter().any(|one| matches!(one.answer, Some((200, _))));
                    assert!(taken, "seed {seed}: {replay} is delivered, and nobody has taken it");
                    "delivered"
                }
                "deadLettered" => {
                    let refused = arrivals.iter().any(|one| matches!(one.answer, Some((422, _))));
                    assert!(refused, "seed {seed}: {replay} is given up, and nobody has refused it");
                    "failedAgain"
                }
                _ => panic!("seed {seed}: {replay} has not ended"),
            };
            assert_eq!(stands["standing"], expected, "seed {seed}: {stands}");
            assert_eq!(stands["replayed"]["as"], replay["id"], "seed {seed}");
        }
        self.judge_arrivals(&deliveries, &seen);
        let ours = |letter: &&String| self.letters.contains_key(*letter);
        let replayed = replays.keys().filter(ours).count();
        self.judge_groups(&all);
        (replayed, failed)
    }

    /// Nothing came that is no delivery; nothing twice within one life; and of one event, nothing under two names.
    fn judge_arrivals(&self, deliveries: &[Value], seen: &HashMap<String, Vec<Arrival>>) {
        let seed = self.seed;
        let known: HashSet<String> = deliveries.iter().map(|delivery| name(&delivery["id"])).collect();
        let mut names: HashMap<&str, &str> = HashMap::new();
        for (delivery, arrivals) in seen {
            assert!(known.contains(delivery), "seed {seed}: {delivery} came, and is nowhere");
            let lives: BTreeSet<u32> = arrivals.iter().map(|arrival| arrival.life).collect();
            assert_eq!(lives.len(), arrivals.len(), "seed {seed}: {delivery} came twice: {arrivals:?}");
            let other = names.insert(&arrivals[0].event, delivery);
            assert_eq!(other, None, "seed {seed}: {} came as {delivery} too", arrivals[0].event);
        }
    }

    fn judge_groups(&self, all: &[Value]) {
        let mut counted: BTreeMap<(String, String), u64> = BTreeMap::new();
        for letter in all {
            *counted.entry((name(&letter["group"]), name(&letter["standing"]))).or_default() += 1;
        }
        let mut said = BTreeMap::new();
        for group in self.hub.all("/api/v1/bridge/deadLetterGroups", "deadLetterGroups", 500) {
            for standing in STANDINGS {
                let count = group["counts"][standing].as_u64().unwrap();
                if count > 0 {
                    said.insert((name(&group["fingerprint"]), standing.to_owned()), count);
                }
            }
        }
        assert_eq!(said, counted, "seed {}: the groups count something else than there is", self.seed);
    }

    /// The last new delivery came this long after.
    fn last_new_after(&self, moment: Instant) -> Duration {
        let firsts = self.sink.seen().into_values().map(|arrivals| arrivals[0].at);
        firsts.max().map_or(Duration::ZERO, |last| last.saturating_duration_since(moment))
    }
}

/// Its log has a line for each dead letter.
fn spawn(ground: &Folder) -> Child {
    Hub::command(Path::new(SEAWALL), &ground.folder()).stderr(Stdio::null()).spawn().unwrap()
}

fn name(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no name")).to_owned()
}

/// Sends so many events by several clients; says which delivery each of them led to.
fn refused(hub: &str, count: usize) -> BTreeMap<String, String> {
    let (next, letters) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = Client::connect(hub).unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let id = format!("bad-{number}");
                    let event = json!({"id": id, "type": "a.b", "data": {}}).to_string();
                    let (status, answer) = client.ask("POST", "/api/v1/bridge/events", &event).unwrap();
                    assert_eq!(status, 202, "{answer}");
                    letters.lock().unwrap().insert(name(&answer["data"]["deliveries"][0]), id);
                }
            });
        }
    });
    letters.into_inner().unwrap()
}

fn open_in_groups(hub: &Hub) -> u64 {
    let groups = hub.all("/api/v1/bridge/deadLetterGroups", "deadLetterGroups", 500);
    groups.iter().map(|group| group["counts"]["open"].as_u64().unwrap()).sum()
}

/// The same by so many at once.
fn at_once<T: Send>(count: usize, what: impl Fn() -> T + Sync) -> Vec<T> {
    let ready = Barrier::new(count);
    thread::scope(|scope| {
        let one = || {
            ready.wait();
            what()
        };
        let all: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// PRM-1, PRM-2, HUB-6: killed with -9 in the midst of a replay of thousands, 20 times, it goes on where it was: each dead letter
/// is sent again once, under one name, and what the operation and the groups say adds up.
#[test]
fn prm_1_a_replay_of_thousands_that_is_killed_20_times_sends_each_once() {
    let _alone = alone();
    let count = times("SEAWALL_JUDGE_LETTERS", 3_000) as usize;
    let kills = times("SEAWALL_JUDGE_REPLAY_KILLS", 20);
    let mut desk = Desk::new(count, &json!({}));
    let body = json!({"filter": {"service": "peer"}, "ratePerSecond": 2_000, "canary": false});
    let begin =
        |hub: &Hub| hub.with("POST", &format!("{LETTERS}:replay"), &[("idempotency-key", "all")], &body);
    let Reply { status, body: begun, .. } = begin(&desk.hub);
    assert_eq!((status, &begun["data"]["progress"]["total"]), (202, &json!(count)), "{begun}");
    let (id, began) = (name(&begun["data"]["id"]), Instant::now());
    let (mut midst, mut starting) = (0, 0);
    // So few in each life that it is not done before the last of them.
    let share = (count as u64 / u64::from(kills.max(1)) / 2).max(2);
    for _ in 0..kills {
        if desk.chance.below(5) == 0 {
            let most = Duration::from_millis(60);
            let time = desk.chance.between(Duration::ZERO, most);
            desk.kill();
            let mut process = spawn(&desk.ground);
            thread::sleep(time);
            desk.ground.crash(&mut process);
            desk.sink.next_life();
            starting += 1;
        } else {
            let more = desk.chance.below(share) as usize;
            desk.arrived((desk.sink.count() + more).min(count));
            desk.kill();
        }
        desk.start_again();
        midst += u32::from(desk.operation(&id)["state"] == "running");
    }
    let done = desk.ended(&id, "done");
    let took = began.elapsed();
    let (replayed, failed) = desk.judge();
    let repeated = desk.sink.seen().values().filter(|arrivals| arrivals.len() > 1).count();
    eprintln!(
        "seed {}: {count} replayed in {took:.1?}, killed {kills} times ({starting} at the start, {midst} in the midst); \
         {repeated} came more than once, {failed} quarantined",
        desk.seed
    );
    let progress = &done["progress"];
    let number = |field: &str| progress[field].as_u64().unwrap() as usize;
    assert_eq!((replayed, number("begun"), number("skipped")), (count, count, 0), "{done}");
    assert_eq!((number("failed"), number("delivered")), (failed, count - failed), "{done}");
    assert_eq!((number("tried"), number("faltered")), (count, failed), "{done}");
    assert!(midst * 2 >= kills, "it was done before it was killed often enough: {midst} of {kills}");
    let again = begin(&desk.hub);
    assert_eq!((again.status, &again.body["data"]["id"]), (202, &json!(id)), "the key means the same still");
    assert_eq!(desk.hub.get(OPERATIONS)["operations"].as_array().unwrap().len(), 1);
}

/// HUB-6: whoever pauses or cancels a replay at full speed has peace within a second. Paused, it stays so over a crash, and goes
/// on when somebody says so; cancelled, it leaves what it has not begun.
#[test]
fn hub_6_a_replay_that_is_halted_leaves_the_peer_alone() {
    let _alone = alone();
    let mut desk = Desk::new(2_000, &json!({}));
    let id = desk.replay_all(2_000, false);
    desk.arrived(600);
    let (paused, halted) = (desk.steer(&id, "pause"), Instant::now());
    assert_eq!(paused["state"], "paused", "{paused}");
    desk.ended(&id, "paused");
    // What had begun has ended, and nothing begins any more: not in this process, and not in the next.
    desk.fence("after-pause");
    let (took, paused) = (desk.last_new_after(halted), desk.operation(&id));
    desk.kill();
    desk.start_again();
    desk.fence("after-crash");
    thread::sleep(PEACE);
    assert_eq!(desk.operation(&id)["progress"], paused["progress"], "it is paused");
    let begun = paused["progress"]["begun"].as_u64().unwrap() as usize;
    assert_eq!((desk.sink.count(), &desk.operation(&id)["state"]), (begun + 2, &json!("paused")));

    desk.steer(&id, "resume");
    desk.arrived(begun + 2 + 200);
    let (_, halted) = (desk.steer(&id, "cancel"), Instant::now());
    let cancelled = desk.ended(&id, "cancelled");
    let quiet = desk.last_new_after(halted);
    desk.fence("after-cancel");
    thread::sleep(PEACE);
    let (replayed, failed) = desk.judge();
    eprintln!(
        "seed {}: paused at {begun}, the last came {took:.2?} after; cancelled at {replayed}, {quiet:.2?} after",
        desk.seed
    );
    assert!(took <= PEACE && quiet <= PEACE, "{took:?} {quiet:?}");
    let progress = &cancelled["progress"];
    assert_eq!((&progress["begun"], &progress["delivered"]), (&json!(replayed), &json!(replayed - failed)));
    assert!(replayed < 2_000, "it was to be halted in the midst");
    assert_eq!(desk.sink.count(), replayed + 3, "and nothing has come since");
}

/// HUB-6. Trap "replay of many before anybody knows that the fix works": a fix that does not help costs one request, and one that
/// helps some at most eleven.
#[test]
fn hub_6_a_canary_that_fails_is_all_that_is_sent() {
    let _alone = alone();
    let mut desk = Desk::new(100, &json!({}));
    desk.sink.be(PeerBehavior::REFUSING);
    let id = desk.replay_all(2_000, true);
    desk.ended(&id, "stopped");
    desk.sink.be(PeerBehavior::Kind);
    desk.fence("after-one");
    assert_eq!(desk.sink.count(), 1 + 1, "one, and the fresh one");

    // That the first has failed again is a dead letter of its own, and one of those that are replayed now.
    desk.sink.take();
    let after = 1 + desk.chance.below(10) as u32;
    desk.sink.be(PeerBehavior::Refuses { after, many: 1 });
    let id = desk.replay_all(2_000, true);
    let stopped = desk.ended(&id, "stopped");
    desk.kill();
    desk.start_again();
    desk.fence("after-eleven");
    thread::sleep(PEACE);
    let sent = desk.sink.count() - 1;
    assert!((after as usize..=11).contains(&sent), "{sent} were sent, of which number {after} was refused");
    let progress = &stopped["progress"];
    assert_eq!((&progress["begun"], &progress["failed"]), (&json!(sent), &json!(1)), "{stopped}");
    assert_eq!(desk.operation(&id)["progress"], *progress, "and nothing since");
}

/// PRM-2, HUB-6: however many click at once, each dead letter is sent once, and under one key there is one operation.
#[test]
fn prm_2_twenty_clicks_at_once_send_once() {
    let _alone = alone();
    let desk = Desk::new(1_000, &json!({}));
    let ids: Vec<&String> = desk.letters.keys().collect();
    let post = |path: &str, headers: &[(&str, &str)], body: &Value| {
        let Reply { status, mut body, .. } = desk.hub.with("POST", path, headers, body);
        (status, body["data"].take())
    };
    let one = format!("{LETTERS}/{}:replay", ids[0]);
    let answers = at_once(20, || post(&one, &[], &Value::Null).0);
    let accepted = answers.iter().filter(|status| **status == 202).count();
    assert!(accepted == 1 && answers.iter().all(|status| [202, 409].contains(status)), "{answers:?}");

    let (keyed, one) = ([("idempotency-key", "click")], format!("{LETTERS}/{}:replay", ids[1]));
    let answers = at_once(20, || post(&one, &keyed, &Value::Null));
    assert!(answers.iter().all(|answer| answer.0 == 202 && answer.1 == answers[0].1), "{answers:?}");

    let (many, mut all) =
        (format!("{LETTERS}:replay"), json!({"filter": {"service": "peer"}, "canary": false}));
    let first = json!({"filter": {"service": "peer"}, "canary": false, "max": 100, "ratePerSecond": 1_000});
    let answers = at_once(20, || post(&many, &keyed, &first));
    let named = |answer: &(u16, Value)| answer.0 == 202 && answer.1["id"] == answers[0].1["id"];
    assert!(answers.iter().all(named), "{answers:?}");
    assert_eq!(desk.hub.get(OPERATIONS)["operations"].as_array().unwrap().len(), 1);
    desk.ended(&name(&answers[0].1["id"]), "done");

    // Without a key these are five operations, of which each takes what the others have not; and meanwhile others click on any.
    all["ratePerSecond"] = json!(1_000);
    let (ended, clicker) = (AtomicBool::new(false), AtomicU64::new(0));
    let click = || {
        let mut chance = Chance::new(desk.seed ^ (clicker.fetch_add(1, Ordering::Relaxed) << 32));
        let (mut accepted, began) = (0, Instant::now());
        while !ended.load(Ordering::Relaxed) && began.elapsed() < desk.patience {
            let letter = ids[chance.below(ids.len() as u64) as usize];
            accepted += u64::from(post(&format!("{LETTERS}/{letter}:replay"), &[], &Value::Null).0 == 202);
        }
        accepted
    };
    let (begun, clicked) = thread::scope(|scope| {
        let clickers = scope.spawn(|| at_once(8, click).into_iter().sum::<u64>());
        let mut begun = 0;
        for (status, answer) in at_once(5, || post(&many, &[], &all)) {
            assert_eq!(status, 202, "{answer}");
            begun += desk.ended(&name(&answer["id"]), "done")["progress"]["begun"].as_u64().unwrap();
        }
        ended.store(true, Ordering::Relaxed);
        (begun, clickers.join().unwrap())
    });
    within(PATIENCE, "what others have clicked on has ended", || {
        desk.hub.get(&format!("{LETTERS}?standing=replaying"))["deadLetters"].as_array().unwrap().is_empty()
    });
    let (replayed, failed) = desk.judge();
    eprintln!("seed {}: {begun} by five operations, {clicked} by hand meanwhile", desk.seed);
    assert_eq!((replayed, failed, begun + clicked), (1_000, 0, 1_000 - 100 - 2), "seed {}", desk.seed);
}

/// HUB-6: a replay waits for a service that is paused and for a circuit that is open: few are ahead, a crash changes nothing, and
/// all arrive in the end. Fresh events overtake it.
#[test]
fn hub_6_a_replay_waits_for_its_service_and_lets_fresh_events_pass() {
    let _alone = alone();
    let mut desk =
        Desk::new(1_500, &json!({"bulkhead": {"max_calls": 1}, "breaker": {"consecutive_failures": 5}}));
    desk.hub.must("POST", &format!("{SERVICE}:pause"), &Value::Null);
    let id = desk.replay_all(10_000, false);
    let begun = |desk: &Desk| desk.operation(&id)["progress"]["begun"].as_u64().unwrap();
    within(PATIENCE, "some are ahead", || begun(&desk) == AHEAD);
    desk.kill();
    desk.start_again();
    let waits = name(&desk.operation(&id)["waitsFor"]);
    assert!(waits.contains("is paused"), "{waits}");

    let circuit = format!("{SERVICE}/circuit");
    desk.hub.must("POST", &format!("{circuit}:forceOpen"), &json!({"reason": "to see that it waits"}));
    desk.hub.must("POST", &format!("{SERVICE}:resume"), &Value::Null);
    let waits = name(&desk.operation(&id)["waitsFor"]);
    assert!(waits.contains("circuit"), "{waits}");
    thread::sleep(PEACE);
    assert_eq!((desk.sink.count(), begun(&desk)), (0, AHEAD), "nothing is sent, and few are ahead");
    desk.hub.must("POST", &format!("{SERVICE}:pause"), &Value::Null);
    desk.hub.must("POST", &format!("{circuit}:reset"), &Value::Null);

    // One at a time is sent here, so that the order in which they arrive is the order in which they were chosen.
    for number in 0..20 {
        desk.hub.send(&json!({"id": format!("fresh-{number}"), "type": "a.b", "data": {}}));
    }
    desk.hub.must("POST", &format!("{SERVICE}:resume"), &Value::Null);
    let is_fresh = |arrival: &Arrival| arrival.event.starts_with("fresh-");
    let arrivals = |desk: &Desk| {
        let mut all: Vec<Arrival> = desk.sink.seen().into_values().map(|mut all| all.remove(0)).collect();
        all.sort_by_key(|arrival| arrival.at);
        all
    };
    within(PATIENCE, "the fresh ones have come", || {
        arrivals(&desk).iter().filter(|arrival| is_fresh(arrival)).count() == 20
    });
    let order = arrivals(&desk);
    let last = order.iter().rposition(is_fresh).unwrap();
    assert!(last < 20 + 20 / 4 + 2, "{last} came before the last of 20 fresh ones, of {AHEAD} replays");

    let (mut sent, mut passed) = (HashMap::new(), Vec::new());
    while sent.len() < 60 && desk.operation(&id)["state"] == "running" {
        let event = format!("fresh-late-{}", sent.len());
        desk.hub.send(&json!({"id": event, "type": "a.b", "data": {}}));
        sent.insert(event, Instant::now());
    }
    desk.ended(&id, "done");
    within(PATIENCE, "all have come", || desk.sink.count() == 1_500 + 20 + sent.len());
    let order = arrivals(&desk);
    for fresh in &order {
        let Some(acknowledged) = sent.get(&fresh.event) else { continue };
        let between = |one: &&Arrival| !is_fresh(one) && one.at > *acknowledged && one.at < fresh.at;
        passed.push(order.iter().filter(between).count());
    }
    passed.sort_unstable();
    eprintln!(
        "seed {}: {} fresh events during a replay; replays sent while one waited: {passed:?}",
        desk.seed,
        sent.len()
    );
    assert!(passed.len() >= 10, "{} were sent while it went on", passed.len());
    // Hundreds of replays are in line at that time.
    assert!(passed[passed.len() * 9 / 10] <= 4, "fresh ones wait for replays: {passed:?}");
    assert_eq!(desk.judge(), (1_500, 0));
}
