//! How far work on many dead letters is, until it has ended.
//!
//! Whoever stops looking does not stop the work: it belongs to the hub.

use std::collections::VecDeque;
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_hub_server::client::{Ask, path_part};
use serde_json::Value;

use crate::failure::{Done, Failure, LEFT, NOT_ALL};
use crate::output::{Progress, cell, note};
use crate::talk::{Data, Session};

const OPERATIONS: &str = "/api/v1/ops/operations";
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How fast it is, is said of so long.
const LATELY: Duration = Duration::from_secs(5);
/// Where there is no bar, a line is written for each of so many parts of the work.
const PARTS: u64 = 10;

pub(super) fn path(id: &str, verb: &str) -> String {
    format!("{OPERATIONS}/{}{verb}", path_part(id))
}

/// What can be done about work that goes on.
pub(super) fn hints(id: &str) -> String {
    ["watch", "pause", "cancel"].map(|verb| format!("seawall operations {verb} {id}")).join("\n")
}

/// Until it has ended, or somebody has seen enough. With `each`, every change is a line of JSON; else only the end is.
pub(super) async fn follow(session: &Session, id: &str, each: bool) -> Done {
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    let (mut shown, mut last) = (None, None::<Data>);
    loop {
        // A hub that is started again goes on with it, and is waited for.
        let ask = Ask::get(path(id, "")).patient();
        let data = tokio::select! {
            _ = &mut stop => return Err(left(session, id, last.filter(|_| !each))),
            data = session.ask(ask) => data?,
        };
        let shown = shown.get_or_insert_with(|| Shown::new(&data.value));
        let changed = last.as_ref().is_none_or(|last| last.text != data.text);
        if each && session.out.json && changed {
            session.out.line(&data.text)?;
        }
        shown.at(&data.value);
        if matches!(data.value["state"].as_str(), Some("done" | "cancelled" | "stopped")) {
            shown.bar.clear();
            return ended(session, &data, each);
        }
        last = Some(data);
        tokio::select! {
            _ = &mut stop => {
                shown.bar.clear();
                return Err(left(session, id, last.filter(|_| !each)));
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Somebody has seen enough.
fn left(session: &Session, id: &str, last: Option<Data>) -> Failure {
    if let Some(last) = last.filter(|_| session.out.json) {
        let _ = session.out.line(&last.text);
    }
    let failure = Failure::new(LEFT, format!("{id} goes on without you"));
    hints(id).lines().fold(failure, Failure::and)
}

fn ended(session: &Session, data: &Data, said: bool) -> Done {
    let operation = &data.value;
    match (session.out.json, said) {
        (true, true) => {}
        (true, false) => session.out.line(&data.text)?,
        (false, _) => session.out.text(&format!(
            "{} is {}: {}",
            cell(&operation["id"]),
            state(operation),
            words(operation)
        ))?,
    }
    let count = |name: &str| operation["progress"][name].as_u64().unwrap_or_default();
    let well = operation["state"] == "done" && count("failed") + count("skipped") == 0;
    if well {
        return Ok(());
    }
    let id = cell(&operation["id"]);
    match operation["state"].as_str() {
        Some("stopped") => {
            note("what has begun goes on by itself, and nothing more begins; mend it, and replay again");
            note(&format!("or go on without a canary: `seawall operations resume {id}`"));
        }
        Some("cancelled") => note("what had begun goes on by itself; what had not is as it was"),
        _ if count("failed") > 0 => {
            note("what has failed again is open: `seawall dlq groups` shows what it has in common");
        }
        _ => note("some are as they were: no request could be made of them, or somebody else was faster"),
    }
    Err(Failure::silent(NOT_ALL))
}

/// Where it stands, and why.
pub(super) fn state(operation: &Value) -> String {
    match operation["why"].as_str() {
        Some(why) => format!("{} ({why})", cell(&operation["state"])),
        None => cell(&operation["state"]),
    }
}

/// How far it is.
pub(super) fn words(operation: &Value) -> String {
    let count = |name: &str| operation["progress"][name].as_u64().unwrap_or_default();
    let total = count("total");
    let mut out = if operation["task"] == "replay" {
        let (delivered, failed, under_way) = (count("delivered"), count("failed"), count("underWay"));
        format!("{delivered} of {total} delivered, {failed} failed again, {under_way} under way")
    } else {
        format!("{} of {total} done", count("begun"))
    };
    if count("skipped") > 0 {
        out.push_str(&format!(", {} left as they were", count("skipped")));
    }
    out
}

/// The same behind a bar: a line of a terminal has 80 columns.
fn brief(operation: &Value) -> String {
    let count = |name: &str| operation["progress"][name].as_u64().unwrap_or_default();
    if operation["task"] != "replay" {
        return format!("{} done", count("begun"));
    }
    format!("{} delivered, {} failed, {} under way", count("delivered"), count("failed"), count("underWay"))
}

/// How many have ended.
fn so_far(operation: &Value) -> u64 {
    let count = |name: &str| operation["progress"][name].as_u64().unwrap_or_default();
    let done =
        if operation["task"] == "replay" { count("delivered") + count("failed") } else { count("begun") };
    done + count("skipped")
}

/// What people are shown: a bar on a terminal, and a few lines anywhere else.
struct Shown {
    bar: Progress,
    clock: Clock,
    lately: VecDeque<(Tick, u64)>,
    told: Option<(String, u64)>,
}

impl Shown {
    fn new(operation: &Value) -> Self {
        let total = operation["progress"]["total"].as_u64();
        Shown { bar: Progress::new(total), clock: Clock::system(), lately: VecDeque::new(), told: None }
    }

    fn at(&mut self, operation: &Value) {
        let (done, now) = (so_far(operation), self.clock.precise());
        let rate = pace(&mut self.lately, now, done);
        let mut words = if self.bar.is_shown() { brief(operation) } else { words(operation) };
        if operation["state"] != "running" {
            words.push_str(&format!("; it is {}", state(operation)));
        } else if let Some(what) = operation["waitsFor"].as_str() {
            words.push_str(&format!("; waits: {what}"));
        } else if rate > 0 {
            let unit = if self.bar.is_shown() { "/s" } else { " a second" };
            words.push_str(&format!(", {rate}{unit}"));
        }
        if self.bar.is_shown() {
            return self.bar.at(done, &words);
        }
        let total = operation["progress"]["total"].as_u64().unwrap_or_default().max(1);
        let waits = operation["waitsFor"].as_str().unwrap_or_default();
        let now = (format!("{} {waits}", state(operation)), done.min(total) * PARTS / total);
        // The end is told by whoever knows how it went.
        if self.told.as_ref() != Some(&now) && operation["endedAt"].is_null() {
            note(&words);
            self.told = Some(now);
        }
    }
}

/// How many a second have ended lately.
fn pace(lately: &mut VecDeque<(Tick, u64)>, now: Tick, done: u64) -> u64 {
    lately.push_back((now, done));
    while lately.len() > 2 && now.since(lately[0].0) > LATELY {
        lately.pop_front();
    }
    let (then, before) = lately[0];
    let time = now.since(then).as_millis().max(1);
    u64::try_from(u128::from(done.saturating_sub(before)) * 1_000 / time).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// HUB-10: how far it is stands in a line, for each kind of work.
    #[test]
    fn hub_10_how_far_work_is_stands_in_a_line() {
        let replay = json!({"task": "replay", "state": "stopped", "why": "the canary failed", "progress":
            {"total": 9, "delivered": 3, "failed": 1, "underWay": 2, "skipped": 1, "begun": 6}});
        assert_eq!(words(&replay), "3 of 9 delivered, 1 failed again, 2 under way, 1 left as they were");
        assert_eq!(brief(&replay), "3 delivered, 1 failed, 2 under way");
        assert_eq!((so_far(&replay), state(&replay)), (5, "stopped (the canary failed)".into()));
        let park =
            json!({"task": "park", "state": "done", "progress": {"total": 9, "begun": 9, "skipped": 0}});
        assert_eq!((words(&park), so_far(&park), state(&park)), ("9 of 9 done".into(), 9, "done".into()));
    }

    /// HUB-10: the pace is of lately, and not of the whole.
    #[test]
    fn hub_10_the_pace_is_of_lately() {
        let start = Clock::system().precise();
        let mut lately = VecDeque::new();
        assert_eq!(pace(&mut lately, start, 100), 0, "nothing is known yet");
        assert_eq!(pace(&mut lately, start + Duration::from_secs(1), 150), 50);
        for second in 2..20 {
            pace(&mut lately, start + Duration::from_secs(second), 150);
        }
        assert_eq!(pace(&mut lately, start + Duration::from_secs(20), 150), 0, "it stands still");
    }
}
