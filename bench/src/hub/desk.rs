//! The dead letter desk with many dead letters on it: reading it, taking events in beside it, and replaying all of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::Bench;
use super::event;
use super::lab::Lab;
use super::load::{Load, Pace, Stop};
use super::report::Row;
use super::scenes::steady;
use super::sink::Manner;
use super::times::Spread;

pub const READS: &str = "the desk with many dead letters of 1 KiB (times: one request)";
pub const GROUPS: &str = "a page of groups";
pub const LIST: &str = "a page of dead letters";
pub const FILTER: &str = "a page of those of a service, a reason and a time";
pub const SEARCH: &str = "a search for a word that all have";
pub const RARE: &str = "a search for a word that one has";
pub const COUNT: &str = "a dry run of a replay of all";
pub const ONE: &str = "one dead letter with all evidence";

pub const INGEST: &str = "acknowledged, one rule, its service paused, 64 clients";
pub const EMPTY_DESK: &str = "with an empty desk";
pub const FULL_DESK: &str = "with a full desk";

pub const REPLAY: &str = "a replay (rate: arrivals at the peer)";

/// Each is asked so often.
const READ_TIMES: usize = 200;
/// Events that become dead letters.
pub const DEAD_GROUP: usize = 7;

pub async fn desk(bench: &mut Bench<'_>) -> Result<(), String> {
    let scenes = [(READS, ""), (INGEST, ""), (REPLAY, "")];
    if !scenes.iter().any(|(scene, name)| bench.options.wants(scene, name)) {
        return Ok(());
    }
    let many = if bench.options.quick { 10_000 } else { 100_000 };
    let mut lab = Lab::new(bench.options).await?;
    let at = lab.peer(Manner::Prompt).await?;
    lab.api.service("sink", at, true).await?;
    lab.api.rule("to-sink", &event::kind(0), "sink").await?;
    ingest(bench, &lab, EMPTY_DESK).await?;

    let at = lab.peer(Manner::Refuses).await?;
    lab.api.service_with_calls("crm", at, 100).await?;
    lab.api.rule("to-crm", &event::kind(DEAD_GROUP), "crm").await?;
    let filled = fill(&mut lab, many).await?;
    eprintln!(
        "  {many} dead letters in {:.0} s, with all words {:.0} s",
        filled.0.as_secs_f64(),
        filled.1.as_secs_f64()
    );

    reads(bench, &mut lab).await?;
    ingest(bench, &lab, FULL_DESK).await?;
    lab.sink.arrivals.refused.set(false);
    let (slow, rest) = if bench.options.quick { (2_000, 8_000) } else { (20_000, 80_000) };
    replay(bench, &mut lab, 500, slow).await?;
    replay(bench, &mut lab, 5_000, rest).await
}

/// So many dead letters: how long that took, and until all can be found by their words.
pub async fn fill(lab: &mut Lab, many: u64) -> Result<(Duration, Duration), String> {
    let began = Instant::now();
    lab.sink.arrivals.refused.set(true);
    let load = Load::new(64, Stop::Events(many));
    lab.driver().closed(Load { first_group: DEAD_GROUP, ..load }).await?;
    let mut dead = None;
    loop {
        let groups = lab.api.ask("GET", "/api/v1/bridge/deadLetterGroups", "").await?;
        let open = groups["data"]["deadLetterGroups"][0]["counts"]["open"].as_u64().unwrap_or(0);
        if open >= many {
            dead.get_or_insert_with(|| began.elapsed());
            let found = lab.api.ask("GET", "/api/v1/bridge/deadLetters?q=currency&page_size=1", "").await?;
            if found["data"]["search"]["unindexed"].as_u64() == Some(0) {
                return Ok((dead.unwrap_or_default(), began.elapsed()));
            }
        }
        if began.elapsed() > Duration::from_secs(600) {
            return Err(format!("only {open} of {many} became dead letters, or their words are missing"));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn reads(bench: &mut Bench<'_>, lab: &mut Lab) -> Result<(), String> {
    let list = lab.api.ask("GET", "/api/v1/bridge/deadLetters?page_size=1", "").await?;
    let newest = &list["data"]["deadLetters"][0];
    let (id, event) = (text(&newest["id"]), text(&newest["event"]));
    let dry = json!({"filter": {}, "dryRun": true}).to_string();
    let at = "/api/v1/bridge/deadLetters";
    let filter =
        format!("{at}?service=crm&reason=refused&status=422&since=2020-01-01T00:00:00Z&standing=open");
    for (name, method, path, body) in [
        (GROUPS, "GET", "/api/v1/bridge/deadLetterGroups".to_owned(), ""),
        (LIST, "GET", at.to_owned(), ""),
        (FILTER, "GET", filter, ""),
        (SEARCH, "GET", format!("{at}?q=currency"), ""),
        (RARE, "GET", format!("{at}?q={event}"), ""),
        (COUNT, "POST", format!("{at}:replay"), dry.as_str()),
        (ONE, "GET", format!("{at}/{id}"), ""),
    ] {
        if !bench.options.wants(READS, name) {
            continue;
        }
        let mut times = Vec::with_capacity(READ_TIMES);
        let (before, began) = (lab.before(), lab.times.now());
        for _ in 0..READ_TIMES {
            let asked = Instant::now();
            lab.api.ask(method, &path, body).await?;
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        let took = lab.times.now() - began;
        let row = lab.row(READS, name.into(), before, (READ_TIMES as u64, took), &Spread::new(times));
        bench.add(row);
    }
    Ok(())
}

async fn ingest(bench: &mut Bench<'_>, lab: &Lab, name: &str) -> Result<(), String> {
    if !bench.options.wants(INGEST, name) {
        return Ok(());
    }
    let load = Load { pace: Pace::Acknowledged, ..steady(bench, 64) };
    lab.warm_up(load).await?;
    let mut rounds: Vec<Row> = Vec::new();
    for _ in 0..bench.rounds() {
        let before = lab.before();
        let sent = lab.driver().closed(load).await?;
        rounds.push(lab.acknowledged(INGEST, name.into(), before, &sent));
    }
    bench.add_best(&rounds);
    Ok(())
}

/// So many are replayed at this rate, and arrive.
async fn replay(bench: &mut Bench<'_>, lab: &mut Lab, rate: u64, count: u64) -> Result<(), String> {
    let name = format!("{count} at {rate}/s");
    if !bench.options.wants(REPLAY, &name) {
        return Ok(());
    }
    let arrivals = lab.sink.arrivals.clone();
    let arrived = arrivals.again.get();
    arrivals.again_between.set(None);
    let wanted = json!({"filter": {"service": "crm"}, "ratePerSecond": rate, "max": count, "canary": false})
        .to_string();
    let before = lab.before();
    let begun = lab.api.ask("POST", "/api/v1/bridge/deadLetters:replay", &wanted).await?;
    let path = format!("/api/v1/ops/operations/{}", text(&begun["data"]["id"]));
    let began = Instant::now();
    let operation = loop {
        sleep(Duration::from_millis(200)).await;
        let operation = lab.api.ask("GET", &path, "").await?;
        if operation["data"]["state"] != "running" || began.elapsed() > Duration::from_secs(600) {
            break operation;
        }
    };
    let (came, between) = (arrivals.again.get() - arrived, arrivals.again_between.get().unwrap_or_default());
    let mut row = lab.row(REPLAY, name, before, (came, between.1 - between.0), &Spread::new(Vec::new()));
    row.notes.push(format!("{}, {}", text(&operation["data"]["state"]), operation["data"]["progress"]));
    bench.add(row);
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
