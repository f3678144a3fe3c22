//! The items that need attention, most urgent first.

use seawall_api::{self as wire, AttentionSeverity};
use seawall_hub_core::domain::time::Millis;

use crate::http::access::Caller;
use crate::http::ops::status::ServiceStatus;
use crate::hub::Server;

/// The maximum number of items; the most urgent ones come first.
const NAMED_MAX: usize = 50;
/// The number of seconds after which a due delivery counts as delayed.
const LATE_SECONDS: u64 = 60;

/// A condition that needs the attention of an operator.
struct AttentionItem {
    /// The sort key; larger comes first.
    weight: (u8, u64),
    kind: &'static str,
    bad: bool,
    service: Option<String>,
    rule: Option<String>,
    since: Option<Millis>,
    /// The number of deliveries that wait because of it.
    waiting: u64,
    waits_because: Option<String>,
    /// The number of open dead letters.
    dead: u64,
    state: Option<&'static str>,
    message: String,
}

pub(in crate::http) async fn attention(
    hub: &Server,
    caller: &Caller,
    rows: &[ServiceStatus],
) -> Vec<wire::AttentionItem> {
    let mut matters: Vec<AttentionItem> = rows.iter().flat_map(|row| of_service(hub, row)).collect();
    matters.extend(of_rules(hub, caller));
    matters.sort_by_key(|matter| std::cmp::Reverse(matter.weight));
    matters.truncate(NAMED_MAX);
    let mut shown = Vec::with_capacity(matters.len());
    for mut matter in matters {
        if matter.kind == "circuit" {
            (matter.since, matter.message) = circuit_since(hub, rows, &matter).await;
        }
        shown.push(matter.view());
    }
    shown
}

impl AttentionItem {
    fn of(kind: &'static str, row: &ServiceStatus, weight: u8, now: Millis) -> Self {
        let waiting = row.waiting;
        AttentionItem {
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

    fn view(self) -> wire::AttentionItem {
        wire::AttentionItem {
            kind: self.kind.into(),
            severity: if self.bad { AttentionSeverity::Bad } else { AttentionSeverity::Warn },
            service: self.service.map(Into::into),
            rule: self.rule.map(Into::into),
            since: self.since.map(|since| since.to_string().into()),
            waiting: self.waiting,
            waits_because: self.waits_because,
            dead_letters: self.dead,
            circuit: self.state.map(Into::into),
            message: self.message,
        }
    }
}

fn of_service(hub: &Server, row: &ServiceStatus) -> Vec<AttentionItem> {
    let (kept, now, mut found) = (&row.kept, hub.now(), Vec::new());
    let stopped = matches!(row.circuit, Some("open" | "forcedOpen" | "halfOpen"));
    if let Some(state) = row.circuit.filter(|state| *state != "closed") {
        // One that is forced closed lets everything pass: nothing waits for it, and somebody may have forgotten it.
        let matter = AttentionItem::of("circuit", row, if stopped { 5 } else { 1 }, now);
        found.push(AttentionItem {
            bad: matches!(state, "open" | "forcedOpen"),
            state: Some(state),
            ..matter
        });
    }
    if row.service.paused {
        let message = "paused: deliveries wait until it is resumed".to_owned();
        let since = Some(row.service.changed);
        found.push(AttentionItem { since, message, ..AttentionItem::of("paused", row, 3, now) });
    }
    if kept.dead_letters > 0 {
        let dead = kept.dead_letters;
        let message = "open dead letters: replay or delete them".to_owned();
        let matter = AttentionItem::of("deadLetters", row, 4, now);
        found.push(AttentionItem {
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
            "due deliveries are not sent: the service is too slow, or its limits are too low".to_owned();
        found.push(AttentionItem { since: Some(since), message, ..AttentionItem::of("late", row, 2, now) });
    }
    found
}

/// Returns when a circuit entered its state and a message with the reason. The stored history is read only for the items shown.
async fn circuit_since(
    hub: &Server,
    rows: &[ServiceStatus],
    matter: &AttentionItem,
) -> (Option<Millis>, String) {
    let row = rows.iter().find(|row| Some(row.service.name.as_str()) == matter.service.as_deref());
    let history = match row {
        Some(row) => hub.gateway.circuit_history(&row.service.name, 50).await.unwrap_or_default(),
        None => Vec::new(),
    };
    // Between open and half open it goes back and forth with each probe: the outage began when it was last closed.
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
            format!("circuit forced open; nothing is sent until it is reset{why}")
        }
        Some("forcedClosed") => {
            format!("circuit forced closed; the breaker does not protect the service until it is reset{why}")
        }
        _ => format!("circuit open: too many attempts failed; a probe is sent after each cooldown{why}"),
    };
    (began.map(|moved| moved.changed), message)
}

/// Lists rules that were disabled with a reason; their matching events are held.
fn of_rules(hub: &Server, caller: &Caller) -> Vec<AttentionItem> {
    let rules = hub.registry.rules().into_iter().filter(|rule| !rule.enabled && caller.sees(&rule.service));
    rules
        .filter_map(|rule| {
            let message = format!("disabled, matching events are held: {}", rule.note.as_deref()?);
            Some(AttentionItem {
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
