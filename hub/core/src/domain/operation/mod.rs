//! Work on many dead letters: replayed, parked, deleted or purged, a few at a time.
//!
//! # Why is it kept?
//! A replay of a hundred thousand takes minutes to hours. Whoever has started one wants to see how far it is, to stop it when it
//! does harm, and not to start over because a process has ended. So an operation is a row: each step and how far it has come are
//! written in one unit, and a start goes on where the last one ended.
//!
//! # What does it take?
//! What matched when it began. A replay that fails again is a newer dead letter, so no operation ever chases its own tail.

use std::fmt;
use std::time::Duration;

use super::delivery::DeliveryId;
use super::letter::LetterFilter;
use super::time::Millis;

/// The name of an operation. See [`DeliveryId`] for why it has two halves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    /// Of the database.
    pub era: u64,
    /// Within it.
    pub number: u64,
}

impl OperationId {
    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("op_")
            .filter(|hex| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let half = |text| u64::from_str_radix(text, 16).ok();
        Some(OperationId { era: half(&hex[..16])?, number: half(&hex[16..])? })
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op_{:016x}{:016x}", self.era, self.number)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How a dead letter is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Rendered from the raw event by the rule of today.
    #[default]
    Render,
    /// The same bytes as the first time.
    Same,
}

/// What is done to each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// It is sent again.
    Replay(Plan),
    /// It goes out of sight, and can be restored for a while.
    Delete,
    /// One that was deleted is back.
    Restore,
    /// It is put aside.
    Park,
    /// One that was put aside is open again.
    Unpark,
    /// It goes for good, with its evidence.
    Purge,
}

impl Task {
    /// In one word that does not change.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Task::Replay(_) => "replay",
            Task::Delete => "delete",
            Task::Restore => "restore",
            Task::Park => "park",
            Task::Unpark => "unpark",
            Task::Purge => "purge",
        }
    }
}

/// How many are replayed, and how fast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How.
    pub mode: Mode,
    /// So many a second at most.
    pub rate: u32,
    /// So many first, then so many more, and the rest only if all of them are delivered at the first try. None for no such test.
    pub canary: Vec<u32>,
}

impl Plan {
    /// So many a second, if nobody says otherwise.
    pub const RATE: u32 = 50;
    /// The most that can be asked for.
    pub const RATE_MAX: u32 = 10_000;
    /// One, then ten, then all.
    pub const CANARY: [u32; 2] = [1, 10];
}

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// It goes on.
    Running,
    /// Somebody has halted it.
    Paused,
    /// All that it took has ended.
    Done,
    /// Somebody has ended it. What had begun by then goes on by itself.
    Cancelled,
    /// It has ended by itself: the canary failed.
    Stopped,
}

impl Run {
    /// All of them.
    pub const ALL: [Run; 5] = [Run::Running, Run::Paused, Run::Done, Run::Cancelled, Run::Stopped];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Run::Running => "running",
            Run::Paused => "paused",
            Run::Done => "done",
            Run::Cancelled => "cancelled",
            Run::Stopped => "stopped",
        }
    }

    /// Whether nothing more begins.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Run::Done | Run::Cancelled | Run::Stopped)
    }
}

/// How far an operation is. All of it is about dead letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Taken, and what was asked for has been done or has begun.
    pub begun: u64,
    /// Left as they were: no request could be made, or somebody else was faster.
    pub skipped: u64,
    /// Replays whose first try has ended.
    pub tried: u64,
    /// Replays whose first try has failed.
    pub faltered: u64,
    /// Replays that were delivered.
    pub delivered: u64,
    /// Replays that were given up.
    pub failed: u64,
}

impl Tally {
    /// Replays that have begun and were neither delivered nor given up.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.begun.saturating_sub(self.delivered + self.failed)
    }

    /// Replays whose first try has not ended.
    #[must_use]
    pub const fn untried(&self) -> u64 {
        self.begun.saturating_sub(self.tried)
    }
}

/// Work on many dead letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Its name.
    pub id: OperationId,
    /// What is done.
    pub task: Task,
    /// To which.
    pub filter: LetterFilter,
    /// To so many at most; to all, if nothing.
    pub most: Option<u64>,
    /// So many matched when it began.
    pub total: u64,
    /// Where it stands,
    pub run: Run,
    /// and why, if there is more to say.
    pub why: Option<String>,
    /// The delivery whose failure has stopped it, or the first dead letter of which no request could be made.
    pub failed_delivery: Option<DeliveryId>,
    /// How far it is.
    pub tally: Tally,
    /// The last dead letter that it has looked at.
    pub cursor: u64,
    /// Whether it has looked at all of them.
    pub looked: bool,
    /// Who has started it.
    pub who: String,
    /// And why.
    pub reason: Option<String>,
    /// When.
    pub began: Millis,
    /// When it last moved.
    pub changed: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// So many more may begin.
    Begin(u64),
    /// Nothing can begin until something that has begun has been tried.
    Wait,
    /// Nothing is left.
    Finish,
    /// It must not go on.
    Stop(String),
}

/// Only so many replays whose first try has not ended are ahead, or as many as have ended lately: whoever halts an operation
/// wants the peer to have peace at once, and not when a long line has been dealt with.
pub const AHEAD: u64 = 32;

impl Operation {
    /// What comes next. `lately` says how many have been tried within the last half second.
    #[must_use]
    pub fn next(&self, lately: u64) -> Step {
        self.next_beside(lately, 0)
    }

    /// The same, while so many replays wait for services that are away: they hold up nobody else.
    #[must_use]
    pub fn next_beside(&self, lately: u64, away: u64) -> Step {
        let Tally { begun, skipped, .. } = self.tally;
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(begun + skipped));
        let exhausted = self.looked || left == 0;
        let Task::Replay(plan) = &self.task else {
            return if exhausted { Step::Finish } else { Step::Begin(left) };
        };
        let Canary::Passes { up_to } = self.canary(plan) else {
            return Step::Stop(self.word_on_canary());
        };
        if exhausted {
            return if self.tally.under_way() == 0 { Step::Finish } else { Step::Wait };
        }
        let ahead = AHEAD.max(lately).saturating_sub(self.tally.untried().saturating_sub(away));
        match ahead.min(left).min(up_to.saturating_add(away).saturating_sub(begun)) {
            0 => Step::Wait,
            count => Step::Begin(count),
        }
    }

    /// How many may have begun, going by the canary.
    fn canary(&self, plan: &Plan) -> Canary {
        let Tally { delivered, faltered, failed, skipped, .. } = self.tally;
        let mut up_to = 0;
        for stage in &plan.canary {
            up_to += u64::from(*stage);
            if delivered < up_to {
                let bad = faltered + failed + skipped > 0;
                return if bad { Canary::Fails } else { Canary::Passes { up_to } };
            }
        }
        Canary::Passes { up_to: u64::MAX }
    }

    fn word_on_canary(&self) -> String {
        let Tally { begun, skipped, faltered, .. } = self.tally;
        let tried = begun + skipped;
        if skipped > 0 {
            return format!("the canary failed: no request could be made of {skipped} of {tried}");
        }
        format!("the canary failed: {faltered} of {tried} did not go well at the first try")
    }
}

enum Canary {
    Passes { up_to: u64 },
    Fails,
}

/// How fast an operation goes: an even pace, with a little catching up, and never a wave.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: u32,
    /// What may begin by now.
    saved: f64,
}

impl Pace {
    /// What was not used is kept for so many seconds,
    const KEPT: f64 = 2.0;
    /// and made up for at so many times the pace: a store that pauses for its disk costs no rate, and a peer that was promised a
    /// rate gets hardly more.
    const CATCHING_UP: f64 = 1.25;

    /// Of so many a second.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        Pace { rate, saved: 1.0 }
    }

    /// So much time has passed: how many may begin now.
    pub fn after(&mut self, time: Duration) -> u64 {
        let (rate, earned) = (f64::from(self.rate), f64::from(self.rate) * time.as_secs_f64());
        self.saved = (self.saved + earned).min(rate * Self::KEPT + 1.0);
        self.saved.min(earned * Self::CATCHING_UP + 1.0) as u64
    }

    /// So many have begun.
    pub fn used(&mut self, count: u64) {
        self.saved = (self.saved - count as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests;
