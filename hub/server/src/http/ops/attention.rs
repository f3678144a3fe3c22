//! The items that need attention, most urgent first.

use seawall_api::{AttentionItem, AttentionSeverity, CircuitState};
use seawall_hub_core::domain;
use seawall_hub_core::domain::time::Millis;

use super::status::ServiceStatus;
use crate::http::access::Caller;
use crate::http::input::slug;
use crate::hub::Server;

/// The maximum number of items; the most urgent ones come first.
const NAMED_MAX: usize = 50;
/// The number of seconds after which a due delivery counts as delayed.
const LATE_SECONDS: u64 = 60;

/// An item with its sort key; larger comes first.
type Weighed = ((u8, u64), AttentionItem);

pub(crate) async fn attention(hub: &Server, caller: &Caller, rows: &[ServiceStatus]) -> Vec<AttentionItem> {
    let mut found: Vec<Weighed> = rows.iter().flat_map(|row| of_service(hub, row)).collect();
    found.extend(of_rules(hub, caller));
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.truncate(NAMED_MAX);
    let mut items: Vec<AttentionItem> = found.into_iter().map(|(_, item)| item).collect();
    for item in items.iter_mut().filter(|item| item.kind == "circuit") {
        circuit_since(hub, item).await;
    }
    items
}

/// An item about a service, of which no more is known yet.
fn item(kind: &str, row: &ServiceStatus, now: Millis) -> AttentionItem {
    AttentionItem {
        kind: kind.into(),
        severity: AttentionSeverity::Warn,
        service: Some(row.service.name.as_str().into()),
        rule: None,
        since: None,
        waiting: row.waiting,
        waits_because: row.wait.map(|wait| wait.explain(now)),
        dead_letters: 0,
        circuit: None,
        message: String::new(),
    }
}

fn of_service(hub: &Server, row: &ServiceStatus) -> Vec<Weighed> {
    let (kept, now, mut found) = (&row.kept, hub.now(), Vec::new());
    let mut add = |weight: u8, count: u64, item: AttentionItem| found.push(((weight, count), item));
    let is_stopped = matches!(row.circuit, Some("open" | "forcedOpen" | "halfOpen"));
    if let Some(state) = row.circuit.filter(|state| *state != "closed") {
        let is_open = matches!(state, "open" | "forcedOpen");
        let severity = if is_open { AttentionSeverity::Bad } else { AttentionSeverity::Warn };
        let circuit = AttentionItem { severity, circuit: Some(state.into()), ..item("circuit", row, now) };
        // One that is forced closed lets everything pass: nothing waits for it, and somebody may have forgotten it.
        add(if is_stopped { 5 } else { 1 }, row.waiting, circuit);
    }
    if row.service.paused {
        let message = "paused: deliveries wait until it is resumed".to_owned();
        let since = Some(row.service.changed.to_string().into());
        add(3, row.waiting, AttentionItem { since, message, ..item("paused", row, now) });
    }
    if kept.dead_letters > 0 {
        let dead = AttentionItem {
            severity: AttentionSeverity::Bad,
            dead_letters: kept.dead_letters,
            waiting: 0,
            waits_because: None,
            message: "open dead letters: replay or delete them".to_owned(),
            ..item("deadLetters", row, now)
        };
        add(4, kept.dead_letters, dead);
    }
    let late = kept.due_since.filter(|since| now.since(*since).as_secs() >= LATE_SECONDS);
    if let Some(since) = late.filter(|_| !is_stopped && !row.service.paused) {
        let message =
            "due deliveries are not sent: the service is too slow, or its limits are too low".to_owned();
        let since = Some(since.to_string().into());
        add(2, row.waiting, AttentionItem { since, message, ..item("late", row, now) });
    }
    found
}

/// Adds when a circuit entered its state and why. The stored history is read only for the items shown.
async fn circuit_since(hub: &Server, item: &mut AttentionItem) {
    let name = item.service.as_ref().map(slug);
    let history = match &name {
        Some(name) => hub.gateway.circuit_history(name, 50).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let state = item.circuit.as_ref().map(CircuitState::as_str);
    // Between open and half open it goes back and forth with each probe: the outage began when it was last closed.
    let is_trouble = |word: &str| matches!(word, "open" | "halfOpen");
    let began = match state {
        Some(state) if is_trouble(state) => {
            history.iter().take_while(|moved| is_trouble(moved.state.word())).last()
        }
        _ => history.first(),
    };
    let said = history.first().and_then(|moved| moved.reason.as_deref());
    let why = said.map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = match state {
        Some("forcedOpen") => "circuit forced open; nothing is sent until it is reset",
        Some("forcedClosed") => {
            "circuit forced closed; the breaker does not protect the service until it is reset"
        }
        _ => "circuit open: too many attempts failed; a probe is sent after each cooldown",
    };
    item.since = began.map(|moved| moved.changed.to_string().into());
    item.message = format!("{message}{why}");
}

/// Lists rules that were disabled with a reason; their matching events are held.
fn of_rules(hub: &Server, caller: &Caller) -> Vec<Weighed> {
    let rules = hub.registry.rules().into_iter().filter(|rule| !rule.enabled && caller.sees(&rule.service));
    let item = |rule: domain::rule::Rule| {
        let item = AttentionItem {
            kind: "rule".into(),
            severity: AttentionSeverity::Warn,
            service: Some(rule.service.as_str().into()),
            rule: Some(rule.name.as_str().into()),
            since: Some(rule.changed.to_string().into()),
            waiting: 0,
            waits_because: None,
            dead_letters: 0,
            circuit: None,
            message: format!("disabled, matching events are held: {}", rule.note.as_deref()?),
        };
        Some(((2, 0), item))
    };
    rules.filter_map(item).collect()
}
