//! Follows a bulk operation to its end.
//!
//! Ctrl-C stops only the display: the operation runs in the hub.

use std::collections::VecDeque;
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_client::Reply;
use seawall_client::api::{BulkTask, Operation, OperationState};

use crate::connection::Session;
use crate::error::{CommandError, CommandResult, LEFT, NOT_ALL};
use crate::output::{ProgressBar, cell, note};

/// The polling interval.
const LOOK: Duration = Duration::from_millis(500);
/// The window over which the rate is measured.
const LATELY: Duration = Duration::from_secs(5);
/// Without a progress bar, one line is printed per tenth of the work.
const PARTS: u64 = 10;

/// The commands that control a running operation.
pub(super) fn hints(id: &str) -> String {
    ["watch", "pause", "cancel"].map(|verb| format!("seawall operations {verb} {id}")).join("\n")
}

/// Follows an operation until it ends or Ctrl-C. With `each`, every change is a line of JSON; otherwise only the end is.
pub(super) async fn follow(session: &Session, id: &str, each: bool) -> CommandResult {
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    let (mut shown, mut last) = (None, None::<Reply<Operation>>);
    loop {
        // A hub that restarts continues the operation, so the request is retried meanwhile.
        let reply = tokio::select! {
            _ = &mut stop => return Err(left(session, id, last.filter(|_| !each))),
            reply = session.send_patiently(session.hub.operations().get(id)) => reply?,
        };
        let shown = shown.get_or_insert_with(|| FollowDisplay::new(&reply, session.clock.clone()));
        let changed = last.as_ref().is_none_or(|last| last.text() != reply.text());
        if each && session.out.json && changed {
            session.out.line(reply.text())?;
        }
        shown.at(&reply);
        if matches!(reply.state, OperationState::Done | OperationState::Cancelled | OperationState::Stopped) {
            shown.bar.clear();
            return ended(session, &reply, each);
        }
        last = Some(reply);
        tokio::select! {
            _ = &mut stop => {
                shown.bar.clear();
                return Err(left(session, id, last.filter(|_| !each)));
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// The error for Ctrl-C: the operation continues.
fn left(session: &Session, id: &str, last: Option<Reply<Operation>>) -> CommandError {
    if let Some(last) = last.filter(|_| session.out.json) {
        let _ = session.out.line(last.text());
    }
    let failure = CommandError::new(LEFT, format!("{id} continues in the background"));
    hints(id).lines().fold(failure, CommandError::and)
}

fn ended(session: &Session, operation: &Reply<Operation>, said: bool) -> CommandResult {
    match (session.out.json, said) {
        (true, true) => {}
        (true, false) => session.out.line(operation.text())?,
        (false, _) => session.out.text(&summary(operation))?,
    }
    let progress = &operation.progress;
    if operation.state == OperationState::Done && progress.failed + progress.skipped == 0 {
        return Ok(());
    }
    match operation.state {
        OperationState::Stopped => {
            note("replays already started will finish, no more will start; fix the cause, then replay again");
            note(&format!(
                "or continue without a canary: `seawall operations resume {}`",
                cell(&operation.id)
            ));
        }
        OperationState::Cancelled => {
            note("replays already started will finish; the other dead letters are unchanged");
        }
        _ if progress.failed > 0 => {
            note("those that failed again are open: `seawall dlq groups` groups them by failure");
        }
        _ => note("some were skipped: they could not be rendered, or were changed concurrently"),
    }
    Err(CommandError::silent(NOT_ALL))
}

/// The state and the progress of an operation in a sentence.
pub(super) fn summary(operation: &Operation) -> String {
    format!("{} is {}: {}", cell(&operation.id), state(operation), words(operation))
}

/// The state of an operation, with its reason.
fn state(operation: &Operation) -> String {
    match &operation.why {
        Some(why) => format!("{} ({why})", cell(&operation.state)),
        None => cell(&operation.state),
    }
}

/// The progress of an operation.
fn words(operation: &Operation) -> String {
    let progress = &operation.progress;
    let total = progress.total;
    let mut out = if operation.task == BulkTask::Replay {
        let (delivered, failed, under_way) = (progress.delivered, progress.failed, progress.under_way);
        format!("{delivered} of {total} delivered, {failed} failed again, {under_way} in progress")
    } else {
        format!("{} of {total} done", progress.begun)
    };
    if progress.skipped > 0 {
        out.push_str(&format!(", {} skipped", progress.skipped));
    }
    out
}

/// A shorter form that fits behind a progress bar in 80 columns.
fn brief(operation: &Operation) -> String {
    let progress = &operation.progress;
    if operation.task != BulkTask::Replay {
        return format!("{} done", progress.begun);
    }
    let (delivered, failed, under_way) = (progress.delivered, progress.failed, progress.under_way);
    format!("{delivered} delivered, {failed} failed, {under_way} in progress")
}

/// The number of dead letters that are done.
fn so_far(operation: &Operation) -> u64 {
    let progress = &operation.progress;
    let replays = operation.task == BulkTask::Replay;
    let done = if replays { progress.delivered + progress.failed } else { progress.begun };
    done + progress.skipped
}

/// The progress display: a bar on a terminal, a few lines elsewhere.
struct FollowDisplay {
    bar: ProgressBar,
    clock: Clock,
    lately: VecDeque<(Tick, u64)>,
    told: Option<(String, u64)>,
}

impl FollowDisplay {
    fn new(operation: &Operation, clock: Clock) -> Self {
        FollowDisplay {
            bar: ProgressBar::new(Some(operation.progress.total)),
            clock,
            lately: VecDeque::new(),
            told: None,
        }
    }

    fn at(&mut self, operation: &Operation) {
        let (done, now) = (so_far(operation), self.clock.precise());
        let rate = pace(&mut self.lately, now, done);
        let mut words = if self.bar.is_shown() { brief(operation) } else { words(operation) };
        if operation.state != OperationState::Running {
            words.push_str(&format!("; state: {}", state(operation)));
        } else if let Some(what) = &operation.waits_for {
            words.push_str(&format!("; waiting: {what}"));
        } else if rate > 0 {
            let unit = if self.bar.is_shown() { "/s" } else { " per second" };
            words.push_str(&format!(", {rate}{unit}"));
        }
        if self.bar.is_shown() {
            return self.bar.at(done, &words);
        }
        let total = operation.progress.total.max(1);
        let waits = operation.waits_for.as_deref().unwrap_or_default();
        let now = (format!("{} {waits}", state(operation)), done.min(total) * PARTS / total);
        // The caller prints the result at the end.
        if self.told.as_ref() != Some(&now) && operation.ended_at.is_none() {
            note(&words);
            self.told = Some(now);
        }
    }
}

/// The recent number of completed dead letters per second.
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
    use super::*;

    /// HUB-10: progress fits in a line, for each kind of operation.
    #[test]
    fn hub_10_how_far_work_is_stands_in_a_line() {
        let mut operation =
            sample(r#"{"total": 9, "delivered": 3, "failed": 1, "underWay": 2, "skipped": 1, "begun": 6}"#);
        operation.why = Some("the canary failed".into());
        assert_eq!(words(&operation), "3 of 9 delivered, 1 failed again, 2 in progress, 1 skipped");
        assert_eq!(brief(&operation), "3 delivered, 1 failed, 2 in progress");
        assert_eq!((so_far(&operation), state(&operation)), (5, "stopped (the canary failed)".into()));
        let mut park =
            sample(r#"{"total": 9, "delivered": 0, "failed": 0, "underWay": 0, "skipped": 0, "begun": 9}"#);
        (park.task, park.state) = (BulkTask::Park, OperationState::Done);
        assert_eq!((words(&park), so_far(&park), state(&park)), ("9 of 9 done".into(), 9, "done".into()));
    }

    fn sample(progress: &str) -> Operation {
        let progress = progress.replacen('{', r#"{"tried": 0, "faltered": 0, "#, 1);
        let text = format!(
            r#"{{"id": "op_1", "task": "replay", "state": "stopped", "filter": {{}}, "percent": 0, "progress": {progress},
                "who": "admin", "beganAt": "", "changedAt": ""}}"#
        );
        serde_json::from_str(&text).unwrap()
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
