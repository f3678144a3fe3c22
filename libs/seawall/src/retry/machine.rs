//! Whether to try again, and how long to wait: the whole decision but for the budget and the clock.

use std::time::Duration;

use super::config::{FailedAttempt, Safety, Settings};
use crate::fault::{Code, Fault, Listed, Names, Ran, Verdict};
use crate::stats::spread;

/// What is known when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) fault: Fault,
    /// Attempts so far, refused ones included.
    pub(crate) tries: u32,
    pub(crate) safety: Safety,
    /// Whether a guard further out retries this very operation.
    pub(crate) outer_retries: bool,
}

/// Why there is no further attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GiveUp {
    /// Trying again changes nothing, or nobody asked for it.
    Pointless,
    /// It may have run, and running it twice is not declared safe.
    Unsafe,
    /// No attempts left.
    Exhausted,
}

/// The first "no" decides.
pub(crate) fn decide(situation: Situation, settings: &Settings) -> Result<(), GiveUp> {
    let Situation { fault, tries, safety, outer_retries } = situation;
    if !can_help(fault, settings) || settings.attempts == 1 || (settings.leave_to_outer && outer_retries) {
        return Err(GiveUp::Pointless);
    }
    if safety == Safety::Once && fault.did_run() != Ran::No {
        return Err(GiveUp::Unsafe);
    }
    if tries >= settings.attempts {
        return Err(GiveUp::Exhausted);
    }
    Ok(())
}

fn can_help(fault: Fault, settings: &Settings) -> bool {
    let lists = |names: &Names| names.lists(fault);
    if settings.ignore_names.as_ref().is_some_and(|names| lists(names) != Listed::No) {
        return false;
    }
    let listed = settings.on_names.as_ref().map(lists);
    if fault.verdict() == Verdict::Rejected {
        return settings.on_rejection || listed.is_some_and(|listed| listed != Listed::No);
    }
    match listed {
        // Who names a fault knows that trying again helps.
        Some(Listed::ByName) => return true,
        Some(Listed::ByKind) if fault.is_transient() => return true,
        _ => {}
    }
    if let (Code::Http(status), Some(statuses)) = (fault.protocol_code(), &settings.on_status) {
        return statuses.contains(status);
    }
    match &settings.classes {
        Some(classes) => fault.is_transient() && classes.contains(&fault.class()),
        None => fault.is_transient() && listed.is_none(),
    }
}

/// How long to wait before the next attempt, after `retries` retries and a wait of `previous`.
///
/// What the peer asked for is honoured up to the cap, with up to a tenth more, so that those who were told the
/// same do not come back in the same instant.
pub(crate) fn wait(
    fault: Fault,
    retries: u32,
    previous: Duration,
    random: u64,
    settings: &Settings,
) -> Duration {
    if let Some(delay) = &settings.delay {
        return (delay.0)(&FailedAttempt::new(retries + 1, fault, previous));
    }
    match fault.retry_after() {
        Some(asked) => {
            let tenth = settings.retry_after_cap.min(asked) / 10;
            let more = tenth.mul_f64((spread(random) >> 11) as f64 / (1_u64 << 53) as f64);
            asked.saturating_add(more).min(settings.retry_after_cap)
        }
        None => settings.backoff.wait(retries, previous, fault.verdict() == Verdict::Throttled, random),
    }
}
