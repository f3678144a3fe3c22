//! The scenes of steady work: acknowledged, delivered, at a gentle rate, and a backlog that drains.

use std::time::Duration;

use serde_json::{Value, json};

use super::Bench;
use super::event::{self, Ids};
use super::lab::Lab;
use super::load::{Load, Pace, Stop};
use super::sink::Manner;

pub const CLIENTS: [usize; 4] = [1, 16, 64, 256];

pub const NO_RULE: &str = "acknowledged, no rule (times: post to acknowledgement)";
pub const ONE_RULE: &str = "acknowledged, one rule, its service paused (times: post to acknowledgement)";
pub const DELIVERED: &str = "acknowledged and delivered (times: acknowledgement to arrival)";
pub const IN_TURN: &str = "the same, each client waits for the arrival (times: acknowledgement to arrival)";
pub const GENTLE: &str = "200 events a second";
pub const ACK_TO_ARRIVAL: &str = "acknowledgement to arrival";
pub const DRAIN: &str = "a backlog that drains";
pub const SCATTERED: &str = "64 clients, ids in no order";
pub const MANY_CALLS: &str = "64 clients, 256 calls at once instead of 20";
pub const TEMPLATES: &str = "64 clients, a rule with filter and templates";

pub fn clients(count: usize) -> String {
    if count == 1 { "1 client".into() } else { format!("{count} clients") }
}

/// A rule that takes something out of an event.
pub fn templates() -> Value {
    json!({
        "filter": "data.total > 100", "path": "/orders/{{ data.about }}", "headers": {"x-order": "{{ data.about }}"},
        "body": {"about": "{{ data.about }}", "amount": "{{ data.total }}", "customer": "{{ data.customer.name }}"},
    })
}

pub async fn acknowledged(bench: &mut Bench<'_>) -> Result<(), String> {
    for scene in [NO_RULE, ONE_RULE] {
        for count in CLIENTS {
            if !bench.options.wants(scene, &clients(count)) {
                continue;
            }
            let mut lab = Lab::new(bench.options).await?;
            if scene == ONE_RULE {
                let at = lab.peer(Manner::Prompt).await?;
                lab.api.service("sink", at, true).await?;
                lab.api.rule("to-sink", &event::kind(0), "sink").await?;
            }
            acknowledge(bench, &lab, scene, clients(count), steady(bench, count)).await?;
        }
    }
    if bench.options.wants(NO_RULE, SCATTERED) {
        let lab = Lab::new(bench.options).await?;
        let load = Load { ids: Ids::Scattered, ..steady(bench, 64) };
        acknowledge(bench, &lab, NO_RULE, SCATTERED.into(), load).await?;
    }
    Ok(())
}

async fn acknowledge(
    bench: &mut Bench<'_>,
    lab: &Lab,
    scene: &'static str,
    name: String,
    load: Load,
) -> Result<(), String> {
    lab.warm_up(load).await?;
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds() {
        let before = lab.before();
        let sent = lab.driver().closed(load).await?;
        rounds.push(lab.acknowledged(scene, name.clone(), before, &sent));
    }
    bench.add_best(&rounds);
    Ok(())
}

pub async fn delivered(bench: &mut Bench<'_>) -> Result<(), String> {
    for (scene, pace) in [(DELIVERED, Pace::Acknowledged), (IN_TURN, Pace::Arrived)] {
        for count in CLIENTS {
            if bench.options.wants(scene, &clients(count)) {
                let lab = Lab::new(bench.options).await?.with_sink().await?;
                deliver(bench, &lab, scene, clients(count), Load { pace, ..steady(bench, count) }).await?;
            }
        }
    }
    if bench.options.wants(IN_TURN, TEMPLATES) {
        let mut lab = Lab::new(bench.options).await?;
        let at = lab.peer(Manner::Prompt).await?;
        lab.api.service("sink", at, false).await?;
        lab.api.rule_with("to-sink", &event::kind(0), "sink", templates()).await?;
        let load = Load { pace: Pace::Arrived, ..steady(bench, 64) };
        deliver(bench, &lab, IN_TURN, TEMPLATES.into(), load).await?;
    }
    if bench.options.wants(IN_TURN, MANY_CALLS) {
        let mut lab = Lab::new(bench.options).await?;
        let at = lab.peer(Manner::Prompt).await?;
        lab.api.service_with_calls("sink", at, 256).await?;
        lab.api.rule("to-sink", &event::kind(0), "sink").await?;
        let load = Load { pace: Pace::Arrived, ..steady(bench, 64) };
        deliver(bench, &lab, IN_TURN, MANY_CALLS.into(), load).await?;
    }
    Ok(())
}

pub fn steady(bench: &Bench<'_>, clients: usize) -> Load {
    Load::new(clients, Stop::After(bench.time()))
}

/// Sends and waits for all of it: one row.
pub async fn deliver(
    bench: &mut Bench<'_>,
    lab: &Lab,
    scene: &'static str,
    name: String,
    load: Load,
) -> Result<(), String> {
    // What warms up is not to leave a backlog behind.
    lab.warm_up(Load { pace: Pace::Arrived, ..load }).await?;
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds() {
        let before = lab.before();
        let sent = lab.driver().closed(load).await?;
        rounds.push(lab.delivered(scene, name.clone(), before, &sent).await);
    }
    bench.add_best(&rounds);
    Ok(())
}

/// A rate that leaves everybody time: what counts is how soon.
pub async fn gentle(bench: &mut Bench<'_>) -> Result<(), String> {
    if !bench.options.wants(GENTLE, ACK_TO_ARRIVAL) {
        return Ok(());
    }
    let lab = Lab::new(bench.options).await?.with_sink().await?;
    lab.driver().open(200, Duration::from_secs(1), 0).await?;
    let before = lab.before();
    let sent = lab.driver().open(200, bench.time() * 5, 0).await?;
    let mut row = lab.delivered(GENTLE, ACK_TO_ARRIVAL.into(), before, &sent).await;
    row.notes.clear();
    let times = &lab.times;
    for (name, spread) in [
        ("post to acknowledgement", times.between(&times.sent, &times.acknowledged, &sent.events)),
        ("post to arrival", times.between(&times.sent, &times.arrived, &sent.events)),
    ] {
        let mut other = row.clone();
        other.name = name.into();
        other.p50_ms = spread.percentile(50.0);
        other.p95_ms = spread.percentile(95.0);
        other.p99_ms = spread.percentile(99.0);
        bench.add(other);
    }
    bench.add(row);
    Ok(())
}

/// Everything waits for a paused service, which is then let go.
pub async fn drain(bench: &mut Bench<'_>) -> Result<(), String> {
    let waiting = if bench.options.quick { 2_000 } else { 20_000 };
    let name = format!("{waiting} waiting");
    if !bench.options.wants(DRAIN, &name) {
        return Ok(());
    }
    let mut lab = Lab::new(bench.options).await?;
    let at = lab.peer(Manner::Prompt).await?;
    lab.api.service("sink", at, true).await?;
    lab.api.rule("to-sink", &event::kind(0), "sink").await?;
    let mut sent = lab.driver().closed(Load::new(64, Stop::Events(waiting))).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = lab.before();
    sent.began = lab.times.now();
    sent.ended = sent.began + 1;
    lab.api.resume("sink", at).await?;
    let mut row = lab.delivered(DRAIN, name, before, &sent).await;
    // Most of it is how long it waited for its turn.
    (row.p50_ms, row.p95_ms, row.p99_ms) = (None, None, None);
    row.notes.retain(|note| !note.starts_with("acknowledged"));
    bench.add(row);
    Ok(())
}
