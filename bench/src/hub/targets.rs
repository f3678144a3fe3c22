//! What the hub has to reach.

use super::desk;
use super::disk;
use super::neighbours::{ALONE_BEFORE_HANGING, ALONE_BEFORE_WAITING, HANGING, SCENE, WAITING};
use super::pages;
use super::report::Row;
use super::scenes::{ACK_TO_ARRIVAL, DELIVERED, DRAIN, GENTLE, IN_TURN, NO_RULE, ONE_RULE, clients};
use super::{curves, scenes};
use crate::ratio::Bound::{self, AtLeast, AtMost};

/// What is to be reached, and what this run has reached.
pub struct Target {
    pub what: String,
    pub value: Option<f64>,
    /// None where there is nothing to keep but to see it.
    pub bound: Option<Bound>,
}

type Column = fn(&Row) -> Option<f64>;
const RATE: Column = |row| row.rate;
const CPU: Column = |row| row.cpu_us;
const P50: Column = |row| row.p50_ms;
const P95: Column = |row| row.p95_ms;
const P99: Column = |row| row.p99_ms;
const RSS: Column = |row| row.rss_mb;

/// The largest of a curve may cost so much more than the smallest and still be called flat: what a noisy machine adds.
const FLAT: f64 = 1.15;

/// The targets, beside what these rows say of them.
pub fn of(rows: &[Row]) -> Vec<Target> {
    let at_64 = clients(64);
    let get = |scene: &str, name: &str, column: Column| {
        let row = rows.iter().find(|row| row.scene == scene && (row.name == name || name.is_empty()));
        row.and_then(column)
    };
    let target = |what: &str, value, bound| Target { what: what.into(), value, bound: Some(bound) };
    let mut targets = vec![
        target("CPU µs, acknowledged, no rule, 64 clients", get(NO_RULE, &at_64, CPU), AtMost(50.0)),
        target("CPU µs, acknowledged, one rule, 64 clients", get(ONE_RULE, &at_64, CPU), AtMost(50.0)),
        target("CPU µs, acknowledged and delivered, 64 clients", get(DELIVERED, &at_64, CPU), AtMost(120.0)),
        target("the same, each client waits for the arrival", get(IN_TURN, &at_64, CPU), AtMost(120.0)),
        target("acknowledged a second, no rule, 64 clients", get(NO_RULE, &at_64, RATE), AtLeast(15_000.0)),
        target("acknowledged a second, one rule, 64 clients", get(ONE_RULE, &at_64, RATE), AtLeast(15_000.0)),
        target(
            "acknowledged and delivered a second, 64 clients",
            get(DELIVERED, &at_64, RATE),
            AtLeast(8_000.0),
        ),
        target("a second while a backlog drains", get(DRAIN, "", RATE), AtLeast(10_000.0)),
        target("200/s: acknowledgement to arrival, p50 ms", get(GENTLE, ACK_TO_ARRIVAL, P50), AtMost(0.3)),
        target("200/s: acknowledgement to arrival, p99 ms", get(GENTLE, ACK_TO_ARRIVAL, P99), AtMost(3.0)),
    ];
    let steady = [NO_RULE, ONE_RULE, DELIVERED, IN_TURN, GENTLE, DRAIN];
    let resident = rows.iter().filter(|row| steady.contains(&row.scene)).filter_map(RSS).reduce(f64::max);
    targets.push(target("RSS MB, the most after any scene above", resident, AtMost(80.0)));
    for (what, scene) in
        [("rules", curves::RULES), ("services", curves::SERVICES), ("pending", curves::PENDING)]
    {
        let mut of_scene = rows.iter().filter(|row| row.scene == scene);
        let ends = of_scene.next().zip(of_scene.next_back());
        let ratio = ends.and_then(|(first, last)| Some(last.cpu_us? / first.cpu_us?));
        let name =
            ends.map_or_else(String::new, |(first, last)| format!(": {} to {}", first.name, last.name));
        targets.push(target(&format!("flat by {what}{name}, CPU µs, times"), ratio, AtMost(FLAT)));
    }
    for (alone, beside) in [(ALONE_BEFORE_HANGING, HANGING), (ALONE_BEFORE_WAITING, WAITING)] {
        let row = rows.iter().find(|row| row.scene == SCENE && row.name.starts_with(beside));
        let (alone, with) = (get(SCENE, alone, P95), row.and_then(P95));
        let beside = row.map_or(beside, |row| &row.name);
        let shift = alone.zip(with).map(|(alone, with)| with - alone);
        let allowed = alone.map_or(1.0, |alone| (alone * 0.1).max(1.0));
        targets.push(target(&format!("p95 ms more {beside}"), shift, AtMost(allowed)));
    }
    for name in [desk::GROUPS, desk::FILTER, desk::SEARCH, desk::RARE] {
        let what = format!("the desk, p95 ms: {name}");
        targets.push(target(&what, get(desk::READS, name, P95), AtMost(50.0)));
    }
    let full = get(desk::INGEST, desk::FULL_DESK, RATE).zip(get(desk::INGEST, desk::EMPTY_DESK, RATE));
    let share = full.map(|(full, empty)| full / empty * 100.0);
    targets.push(target("acknowledged a second with a full desk, % of an empty one", share, AtLeast(80.0)));
    for row in rows.iter().filter(|row| row.scene == desk::REPLAY) {
        let asked = row.name.rsplit(' ').next().and_then(|rate| rate.strip_suffix("/s")?.parse::<f64>().ok());
        let off = row.rate.zip(asked).map(|(rate, asked)| (rate / asked - 1.0).abs() * 100.0);
        targets.push(target(&format!("a replay of {}: off by %", row.name), off, AtMost(5.0)));
    }
    let slowest = rows
        .iter()
        .filter(|row| row.scene == pages::PAGES)
        .max_by(|a, b| a.p95_ms.unwrap_or(0.0).total_cmp(&b.p95_ms.unwrap_or(0.0)));
    let name = slowest.map_or_else(String::new, |row| format!(": {}", row.name));
    let what = format!("the slowest page of a large hub, p95 ms{name}");
    targets.push(target(&what, slowest.and_then(P95), AtMost(50.0)));
    let looking = rows.iter().filter(|row| row.scene == pages::LOOKING).filter_map(CPU).reduce(f64::max);
    targets.push(target("50 open dashboards, % of a core", looking, AtMost(5.0)));
    targets.extend(beside_the_disk(rows, &at_64));
    targets
}

/// How much of what the disk can do becomes acknowledged events.
fn beside_the_disk(rows: &[Row], at_64: &str) -> [Target; 2] {
    let rate = |scene: &str, name: &str| {
        rows.iter().find(|row| row.scene == scene && row.name == name).and_then(|row| row.rate)
    };
    let share = |what: &str, ours: Option<f64>, disk: Option<f64>| Target {
        what: what.into(),
        value: ours.zip(disk).map(|(ours, disk)| ours / disk),
        bound: None,
    };
    [
        share(
            "1 client beside single-row commits of the disk",
            rate(scenes::NO_RULE, &clients(1)),
            rate(disk::SCENE, disk::ONE_ROW),
        ),
        share(
            "64 clients beside rows at 100 a commit of the disk",
            rate(scenes::NO_RULE, at_64),
            rate(disk::SCENE, disk::HUNDRED_ROWS),
        ),
    ]
}
