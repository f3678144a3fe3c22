//! What needs a person, the worst first.

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::Store;
use serde_json::{Value, json};

use super::access::Caller;
use super::ops::Row;
use crate::hub::Hub;

/// So many things are named; whoever has more trouble begins with these.
const NAMED_MAX: usize = 50;
/// What has been due for so long, in seconds, is late.
const LATE_SECONDS: u64 = 60;

/// Something that needs a person.
struct Matter {
    /// The larger, the sooner.
    weight: (u8, u64),
    kind: &'static str,
    bad: bool,
    service: Option<String>,
    rule: Option<String>,
    since: Option<Millis>,
    /// What waits for it, and why.
    waiting: u64,
    waits_because: Option<String>,
    /// Dead letters.
    dead: u64,
    state: Option<&'static str>,
    message: String,
}

pub(super) async fn attention(hub: &Hub, caller: &Caller, rows: &[Row]) -> Vec<Value> {
    let mut matters: Vec<Matter> = rows.iter().flat_map(|row| of_service(hub, row)).collect();
    matters.extend(of_rules(hub, caller));
    matters.sort_by_key(|matter| std::cmp::Reverse(matter.weight));
    matters.truncate(NAMED_MAX);
    let mut shown = Vec::with_capacity(matters.len());
    for mut matter in matters {
        if matter.kind == "circuit" {
            (matter.since, matter.message) = circuit_since(hub, rows, &matter).await;
        }
        shown.push(matter.shown());
    }
    shown
}

impl Matter {
    fn of(kind: &'static str, row: &Row, weight: u8, now: Millis) -> Self {
        let waiting = row.waiting;
        Matter {
            weight: (weight, waiting),
            kind,
            bad: false,
            service: Some(row.service.name.to_string()),
            rule: None,
            since: None,
            waiting,
            waits_because: row.wait.map(|wait| wait.explain(now)),
            dead: 0,
            state: None,
            message: String::new(),
        }
    }

    fn shown(self) -> Value {
        json!({
            "kind": self.kind, "severity": if self.bad { "bad" } else { "warn" }, "service": self.service,
            "rule": self.rule, "since": self.since.map(|since| since.to_string()), "waiting": self.waiting, "waitsBecause": self.waits_because,
            "deadLetters": self.dead, "circuit": self.state, "message": self.message,
        })
    }
}

fn of_service(hub: &Hub, row: &Row) -> Vec<Matter> {
    let (kept, now, mut found) = (&row.kept, hub.now(), Vec::new());
    let stopped = matches!(row.circuit, Some("open" | "forcedOpen" | "halfOpen"));
    if let Some(state) = row.circuit.filter(|state| *state != "closed") {
        // One that is forced closed lets everything pass: nothing waits for it, and somebody may have forgotten it.
        let matter = Matter::of("circuit", row, if stopped { 5 } else { 1 }, now);
        found.push(Matter { bad: matches!(state, "open" | "forcedOpen"), state: Some(state), ..matter });
    }
    if row.service.paused {
        let message = "it is paused: its deliveries are kept, and wait until it is resumed".to_owned();
        let since = Some(row.service.changed);
        found.push(Matter { since, message, ..Matter::of("paused", row, 3, now) });
    }
    if kept.dead_letters > 0 {
        let dead = kept.dead_letters;
        let message = "deliveries were given up: replay them, or discard them".to_owned();
        let matter = Matter::of("deadLetters", row, 4, now);
        found.push(Matter {
            weight: (4, dead),
            bad: true,
            dead,
            waiting: 0,
            waits_because: None,
            message,
            ..matter
        });
    }
    let late = kept.due_since.filter(|since| hub.now().since(*since).as_secs() >= LATE_SECONDS);
    if let Some(since) = late.filter(|_| !stopped && !row.service.paused) {
        let message =
            "deliveries that are due are not sent: it is too slow, or its limits are too tight".to_owned();
        found.push(Matter { since: Some(since), message, ..Matter::of("late", row, 2, now) });
    }
    found
}

/// Since when a circuit has stood so, and why. What is kept of it is asked for only where it is shown.
async fn circuit_since(hub: &Hub, rows: &[Row], matter: &Matter) -> (Option<Millis>, String) {
    let row = rows.iter().find(|row| Some(row.service.name.as_str()) == matter.service.as_deref());
    let history = match row {
        Some(row) => hub.store().circuit_history(&row.service.name, 50).await.unwrap_or_default(),
        None => Vec::new(),
    };
    // Between open and half open it goes back and forth with each probe: the trouble began when it was closed last.
    let is_trouble = |word: &str| matches!(word, "open" | "halfOpen");
    let began = match matter.state {
        Some(state) if is_trouble(state) => {
            history.iter().take_while(|moved| is_trouble(moved.state.word())).last()
        }
        _ => history.first(),
    };
    let said = history.first().and_then(|moved| moved.reason.as_deref());
    let why = said.map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = match matter.state {
        Some("forcedOpen") => {
            format!("somebody forced its circuit open; nothing is sent until it is reset{why}")
        }
        Some("forcedClosed") => {
            format!("somebody forced its circuit closed; it can't protect anybody until it is reset{why}")
        }
        _ => format!("its circuit is open: too many sends failed; a probe goes out after each cooldown{why}"),
    };
    (began.map(|moved| moved.changed), message)
}

/// Rules that the hub or somebody has disabled with a word why: what they match is held.
fn of_rules(hub: &Hub, caller: &Caller) -> Vec<Matter> {
    let rules = hub.rules().into_iter().filter(|rule| !rule.enabled && caller.sees(&rule.service));
    rules
        .filter_map(|rule| {
            let message = format!("it is disabled, and what it matches is held: {}", rule.note.as_deref()?);
            Some(Matter {
                weight: (2, 0),
                kind: "rule",
                bad: false,
                service: Some(rule.service.to_string()),
                rule: Some(rule.name.to_string()),
                since: Some(rule.changed),
                waiting: 0,
                waits_because: None,
                dead: 0,
                state: None,
                message,
            })
        })
        .collect()
}
