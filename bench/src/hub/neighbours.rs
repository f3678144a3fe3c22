//! What a healthy service notices of an ill one.

use std::time::Duration;

use super::Bench;
use super::curves::fill;
use super::event;
use super::lab::Lab;
use super::load::{Load, Stop};
use super::report::Row;
use super::sink::{Manner, Sink};

pub const SCENE: &str = "a healthy service at 200 events a second (times: acknowledgement to arrival)";
pub const ALONE_BEFORE_HANGING: &str = "alone, then";
pub const HANGING: &str = "beside one that hangs, 100 events a second";
pub const ALONE_BEFORE_WAITING: &str = "alone again, then";
/// How many wait follows.
pub const WAITING: &str = "beside one that is down, waiting:";

const PER_SECOND: u32 = 200;
const HANGS: Duration = Duration::from_secs(10);
const HANGING_GROUP: usize = 1;

/// Each ill neighbour has a fresh hub, on which the healthy service was measured alone just before.
pub async fn neighbours(bench: &mut Bench<'_>) -> Result<(), String> {
    if bench.options.wants(SCENE, HANGING) {
        hanging(bench).await?;
    }
    if bench.options.wants(SCENE, WAITING) {
        waiting(bench).await?;
    }
    Ok(())
}

async fn hanging(bench: &mut Bench<'_>) -> Result<(), String> {
    let mut lab = Lab::new(bench.options).await?.with_sink().await?;
    let at = lab.peer(Manner::Hangs(HANGS)).await?;
    lab.api.service("hangs", at, false).await?;
    lab.api.rule("to-hangs", &event::kind(HANGING_GROUP), "hangs").await?;
    let alone = healthy(bench, &lab, ALONE_BEFORE_HANGING).await?;
    bench.add(alone);
    let lead = Duration::from_secs(if bench.options.quick { 1 } else { 5 });
    let driver = lab.driver();
    let ill = driver.open(100, lead + span(bench) + Duration::from_secs(1), HANGING_GROUP);
    let well = async {
        tokio::time::sleep(lead).await;
        healthy(bench, &lab, HANGING).await
    };
    let (ill, well) = tokio::join!(ill, well);
    ill?;
    bench.add(well?);
    Ok(())
}

async fn waiting(bench: &mut Bench<'_>) -> Result<(), String> {
    let mut lab = Lab::new(bench.options).await?.with_sink().await?;
    lab.api.service("down", Sink::nobody().await?, false).await?;
    let alone = healthy(bench, &lab, ALONE_BEFORE_WAITING).await?;
    bench.add(alone);
    let many = if bench.options.quick { 10_000 } else { 100_000 };
    fill(&mut lab, "down", many).await?;
    let row = healthy(bench, &lab, &format!("{WAITING} {many}")).await?;
    bench.add(row);
    Ok(())
}

fn span(bench: &Bench<'_>) -> Duration {
    bench.time() * 7
}

async fn healthy(bench: &Bench<'_>, lab: &Lab, name: &str) -> Result<Row, String> {
    lab.driver().closed(Load::new(1, Stop::Events(20))).await?;
    let before = lab.before();
    let sent = lab.driver().open(PER_SECOND, span(bench), 0).await?;
    let end = lab.times.now();
    let healthy = sent.events.len();
    // Arrivals of others are not counted here, so it is looked at event by event.
    while sent.events.iter().any(|event| lab.times.arrived.get(*event).is_none())
        && lab.times.now() - end < Duration::from_secs(30).as_nanos() as u64
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let arrived = sent.events.iter().filter(|event| lab.times.arrived.get(**event).is_some()).count();
    let spread = lab.times.between(&lab.times.acknowledged, &lab.times.arrived, &sent.events);
    let whole = lab.times.between(&lab.times.sent, &lab.times.arrived, &sent.events).percentile(95.0);
    let row = lab.row(SCENE, name.into(), before, (arrived as u64, end - sent.began), &spread);
    let row = row.and(whole.map(|p95| format!("post to arrival: p95 {p95:.2} ms")));
    Ok(row.and((arrived < healthy).then(|| format!("{} did not arrive", healthy - arrived))))
}
