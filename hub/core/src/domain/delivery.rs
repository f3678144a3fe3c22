//! What becomes of a delivery after a try: delivered, later, or given up.
//!
//! # Why two ways to count?
//! Five attempts are enough for a peer that answers "no" five times. They are far too few for a peer that is down for an
//! hour: all that was on its way would end as dead letters, and somebody would have to replay it. So by default only tries
//! that the peer has *answered* count, and an outage costs age. What seed-like hubs do, counting every failure, is there
//! for those who want it.

use std::fmt;
use std::time::Duration;

use super::poison::PANICS_MAX;
use super::time::Millis;

/// The name of a delivery: the same for all its tries, also after a restart, and never given out twice.
///
/// The higher half was drawn by chance when the database was made, so that a database that is brought back from a backup
/// and renewed gives out names that nobody has seen; the lower half counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    /// Of the database.
    pub era: u64,
    /// Within it.
    pub number: u64,
}

impl DeliveryId {
    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("dlv_")
            .filter(|hex| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let half = |text| u64::from_str_radix(text, 16).ok();
        Some(DeliveryId { era: half(&hex[..16])?, number: half(&hex[16..])? })
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dlv_{:016x}{:016x}", self.era, self.number)
    }
}

impl fmt::Debug for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where a delivery stands, as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// This process has it in hand, or will take it up.
    Leased,
    /// It was never tried, and there is no room in hand yet.
    Queued,
    /// It waits for its time.
    Waiting,
    /// It waits for its peer to come back: it comes forward when the circuit closes, and is tried at its time anyway.
    Stalled,
    /// It waits for those before it in its order.
    Blocked,
    /// It waits for its rule, which is disabled.
    Held,
    /// The peer has it.
    Delivered,
    /// It was given up.
    DeadLettered,
}

/// What came of one try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The peer has it.
    Delivered,
    /// The peer answered with this status, and asked to wait so long, if it did.
    Answered {
        /// The HTTP status, or what stands for it.
        status: u16,
        /// What the peer asked for.
        retry_after: Option<Duration>,
    },
    /// The peer refused the hub's token, and the hub has thrown it away: the next attempt has another.
    TokenRefused,
    /// The request could not be made at all, and never will be: it was rendered wrong, or the target is forbidden.
    Impossible,
    /// The peer was asked whether it is back, and answered that it is not; it asked to wait so long, if it did.
    FailedProbe {
        /// What the peer asked for.
        retry_after: Option<Duration>,
    },
    /// No connection, or it broke.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// The hub chose not to send: circuit open, rate limit, bulkhead full, paused. Come back then, if that is known.
    Deferred {
        /// When the policy said to come back.
        retry_after: Option<Duration>,
    },
    /// The hub's own code has panicked over it. That says nothing about the peer.
    Panicked,
}

impl Outcome {
    /// The same of a send that was a probe: an answer that may pass says that the outage goes on, and nothing of the delivery.
    #[must_use]
    pub fn of_probe(self) -> Self {
        match self {
            Outcome::Answered { status, retry_after } if may_pass(status) => {
                Outcome::FailedProbe { retry_after }
            }
            outcome => outcome,
        }
    }
}

/// Which failures count against the attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Count {
    /// Those that the peer answered, but for 429 and 502 to 504.
    #[default]
    Answered,
    /// Every failure.
    All,
}

/// How often and how long a delivery is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// So many failures that count; none for as many as is usual.
    pub attempts: Option<u32>,
    /// And so long since it was accepted.
    pub age_max: Duration,
    /// The wait after the first failure; twice as long after each further one.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// What counts.
    pub count: Count,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            attempts: None,
            age_max: Duration::from_secs(3 * 86_400),
            base: Duration::from_secs(1),
            cap: Duration::from_secs(3_600),
            count: Count::Answered,
        }
    }
}

/// So many attempts, unless a rule says otherwise.
pub const ATTEMPTS: u32 = 5;
/// And so many for a service whose preset is `critical`.
pub const ATTEMPTS_CRITICAL: u32 = 6;

/// Where a delivery stands before a try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// When it was accepted.
    pub accepted: Millis,
    /// Failures that counted so far.
    pub counted: u32,
    /// Failures in all so far, deferrals not among them.
    pub failures: u32,
    /// How many of these were panics.
    pub panics: u32,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It is delivered.
    Done,
    /// It is tried again then.
    Later {
        /// When.
        at: Millis,
        /// Where it stands then.
        progress: Progress,
        /// Whether it is the peer that has to come back.
        stalled: bool,
    },
    /// It is given up.
    GiveUp(Reason),
}

/// Why a delivery is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The peer said no, and would say so again.
    Refused,
    /// The peer said that it is gone for good; the rule is paused too.
    Gone,
    /// It could not be sent at all.
    Impossible,
    /// All attempts are spent.
    Attempts,
    /// It has become too old.
    Age,
    /// Its service or its rule was deleted.
    Deleted,
    /// Handling it panics, or ends the process.
    Poison,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 7] = [
        Reason::Refused,
        Reason::Gone,
        Reason::Impossible,
        Reason::Attempts,
        Reason::Age,
        Reason::Deleted,
        Reason::Poison,
    ];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Refused => "refused",
            Reason::Gone => "gone",
            Reason::Impossible => "impossible",
            Reason::Attempts => "attempts",
            Reason::Age => "age",
            Reason::Deleted => "deleted",
            Reason::Poison => "poison",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

/// A deferral without a time to come back is looked at again after this long.
const DEFERRED: Duration = Duration::from_secs(1);
/// The longest wait that a peer may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// What happens to a delivery after a try that ended `now`. `chance` is evenly distributed, for the jitter of the wait.
#[must_use]
pub fn after(outcome: Outcome, progress: Progress, schedule: &Schedule, now: Millis, chance: u64) -> Next {
    let too_old = |at: Millis| at.since(progress.accepted) >= schedule.age_max;
    let asked = match outcome {
        Outcome::Delivered => return Next::Done,
        Outcome::Impossible => return Next::GiveUp(Reason::Impossible),
        Outcome::Answered { status: 410, .. } => return Next::GiveUp(Reason::Gone),
        Outcome::Answered { status, .. } if !may_pass(status) => return Next::GiveUp(Reason::Refused),
        Outcome::Deferred { retry_after } => {
            // Costs nothing but age: the peer has not even been asked.
            let at = now + retry_after.unwrap_or(DEFERRED);
            return if too_old(now) {
                Next::GiveUp(Reason::Age)
            } else {
                Next::Later { at, progress, stalled: false }
            };
        }
        Outcome::Answered { retry_after, .. } | Outcome::FailedProbe { retry_after } => retry_after,
        Outcome::Unreachable | Outcome::TimedOut | Outcome::Panicked | Outcome::TokenRefused => None,
    };
    let counts = counts(outcome, schedule);
    let progress = Progress {
        counted: progress.counted + u32::from(counts),
        failures: progress.failures + 1,
        panics: progress.panics + u32::from(outcome == Outcome::Panicked),
        ..progress
    };
    if progress.panics >= PANICS_MAX {
        return Next::GiveUp(Reason::Poison);
    }
    if progress.counted >= schedule.attempts.unwrap_or(ATTEMPTS) {
        return Next::GiveUp(Reason::Attempts);
    }
    let at = now
        + asked.map_or_else(|| wait(schedule, progress.failures, chance), |asked| asked.min(RETRY_AFTER_MAX));
    if too_old(at) {
        return Next::GiveUp(Reason::Age);
    }
    // Who was told when to come back does so then, circuit or not.
    Next::Later { at, progress, stalled: asked.is_none() && is_outage(outcome) }
}

/// Whether a failure costs an attempt. A deferral is none.
#[must_use]
pub fn counts(outcome: Outcome, schedule: &Schedule) -> bool {
    let failed = !matches!(outcome, Outcome::Delivered | Outcome::Deferred { .. });
    failed && (schedule.count == Count::All || counts_when_answered(outcome))
}

/// Whether a failure with this status may pass by itself.
#[must_use]
pub fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599) && !matches!(status, 501 | 505)
}

/// Whether the peer itself has answered. Gateways in front of it speak 502 to 504, and 429 is about us.
fn counts_when_answered(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered { status, .. } => !matches!(status, 429 | 502..=504),
        Outcome::TokenRefused => true,
        _ => false,
    }
}

/// Whether it says that the peer is away, rather than something about this delivery.
#[must_use]
pub fn is_outage(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Unreachable | Outcome::TimedOut | Outcome::FailedProbe { .. } => true,
        Outcome::Answered { status, .. } => matches!(status, 502..=504),
        _ => false,
    }
}

/// The wait after so many failures: doubled each time up to the cap, and half of it left to chance.
fn wait(schedule: &Schedule, failures: u32, chance: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(40);
    let bound = schedule.base.saturating_mul(1 << doublings.min(31)).min(schedule.cap);
    let half = bound / 2;
    half + half.mul_f64(chance as f64 / (u64::MAX as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Millis = Millis(1_000_000);
    const FRESH: Progress = Progress { accepted: START, counted: 0, failures: 0, panics: 0 };

    fn answered(status: u16) -> Outcome {
        Outcome::Answered { status, retry_after: None }
    }

    /// Plays the same outcome until the end, and says how often it was tried and why it ended.
    fn play(outcome: Outcome, schedule: &Schedule) -> (u32, Reason) {
        let (mut progress, mut now) = (FRESH, START);
        for tries in 1.. {
            match after(outcome, progress, schedule, now, 1 << 63) {
                Next::Later { at, progress: next, .. } => (now, progress) = (at, next),
                Next::GiveUp(reason) => return (tries, reason),
                Next::Done => unreachable!("it never succeeds"),
            }
        }
        unreachable!("it ends")
    }

    /// HUB-5: five answered failures are the end; a permanent one is the end at once; 410 says so.
    #[test]
    fn hub_5_answers_cost_attempts_and_permanent_ones_end_it() {
        let usual = Schedule::default();
        assert_eq!(play(answered(500), &usual), (5, Reason::Attempts));
        for status in [400, 401, 403, 404, 409, 422, 501, 505] {
            assert_eq!(play(answered(status), &usual), (1, Reason::Refused), "{status}");
        }
        assert_eq!(play(answered(410), &usual), (1, Reason::Gone));
        assert_eq!(play(Outcome::Impossible, &usual), (1, Reason::Impossible));
        assert_eq!(after(Outcome::Delivered, FRESH, &usual, START, 0), Next::Done);
    }

    /// HUB-5, PRM-7: an outage costs age and no attempts: it is tried for three days, at most once an hour at the end.
    #[test]
    fn prm_7_an_outage_costs_age_and_not_attempts() {
        for outcome in [
            Outcome::Unreachable,
            Outcome::TimedOut,
            answered(429),
            answered(502),
            answered(503),
            answered(504),
        ] {
            let (tries, reason) = play(outcome, &Schedule::default());
            assert_eq!(reason, Reason::Age, "{outcome:?}");
            assert!((72..150).contains(&tries), "{tries} tries in three days");
        }
        let all = Schedule { count: Count::All, ..Schedule::default() };
        assert_eq!(play(Outcome::Unreachable, &all), (5, Reason::Attempts));
    }

    /// HUB-5. Trap "poison": the third panic is the end, whatever the schedule says, also with other failures in between.
    #[test]
    fn hub_5_the_third_panic_is_the_end() {
        let usual = Schedule::default();
        assert_eq!(play(Outcome::Panicked, &usual), (3, Reason::Poison));
        let patient = Schedule { attempts: Some(1_000), ..usual };
        assert_eq!(play(Outcome::Panicked, &patient), (3, Reason::Poison));
        let strict = Schedule { attempts: Some(2), count: Count::All, ..usual };
        assert_eq!(play(Outcome::Panicked, &strict), (2, Reason::Attempts));
        let (mut progress, mut now) = (FRESH, START);
        for outcome in
            [Outcome::Panicked, Outcome::Unreachable, Outcome::Panicked, answered(503), Outcome::TimedOut]
        {
            let Next::Later { at, progress: next, .. } = after(outcome, progress, &usual, now, 0) else {
                unreachable!("two panics are no end")
            };
            (now, progress) = (at, next);
        }
        assert_eq!((progress.panics, progress.failures), (2, 5));
        assert_eq!(after(Outcome::Panicked, progress, &usual, now, 0), Next::GiveUp(Reason::Poison));
    }

    /// HUB-5. Trap "an open circuit burns the event's five attempts": deferrals cost no attempt, only age.
    #[test]
    fn hub_5_deferrals_cost_no_attempt() {
        let progress = Progress { counted: 4, failures: 4, ..FRESH };
        let deferred = Outcome::Deferred { retry_after: Some(Duration::from_secs(30)) };
        let later = after(deferred, progress, &Schedule::default(), START, 0);
        assert_eq!(later, Next::Later { at: START + Duration::from_secs(30), progress, stalled: false });
        let old = START + Duration::from_secs(4 * 86_400);
        assert_eq!(after(deferred, progress, &Schedule::default(), old, 0), Next::GiveUp(Reason::Age));
    }

    /// HUB-5: what the peer asks for is honoured, up to an hour.
    #[test]
    fn hub_5_the_peer_may_ask_for_a_wait() {
        let ask =
            |seconds| Outcome::Answered { status: 503, retry_after: Some(Duration::from_secs(seconds)) };
        let at = |seconds| match after(ask(seconds), FRESH, &Schedule::default(), START, 0) {
            Next::Later { at, .. } => at.since(START).as_secs(),
            other => unreachable!("{other:?}"),
        };
        assert_eq!((at(7), at(100_000)), (7, 3_600));
    }

    /// HUB-5: what fails because the peer is away waits for the peer; what was told when to come back, or was answered, does
    /// not.
    #[test]
    fn hub_5_an_outage_stalls() {
        let stalls = |outcome| match after(outcome, FRESH, &Schedule::default(), START, 0) {
            Next::Later { stalled, .. } => stalled,
            other => unreachable!("{other:?}"),
        };
        assert!(stalls(Outcome::Unreachable) && stalls(Outcome::TimedOut) && stalls(answered(503)));
        assert!(!stalls(answered(500)) && !stalls(answered(429)));
        assert!(!stalls(Outcome::Answered { status: 503, retry_after: Some(Duration::from_secs(7)) }));
        for reason in Reason::ALL {
            assert_eq!(Reason::from_word(reason.word()), Some(reason));
        }
    }

    proptest! {
        /// HUB-5: whatever is answered in which order, it ends; counted never passes the attempts; time never runs back.
        #[test]
        fn hub_5_every_delivery_ends(
            outcomes in proptest::collection::vec(0_u8..6, 1..50), attempts in 1_u32..8, chance: u64,
        ) {
            let schedule = Schedule { attempts: Some(attempts), ..Schedule::default() };
            let (mut progress, mut now) = (FRESH, START);
            for turn in outcomes.iter().cycle().take(100_000) {
                let outcome = match turn {
                    0 => answered(500),
                    1 => answered(503),
                    2 => Outcome::Unreachable,
                    3 => Outcome::TimedOut,
                    4 => Outcome::Deferred { retry_after: None },
                    _ => Outcome::Deferred { retry_after: Some(Duration::from_secs(60)) },
                };
                match after(outcome, progress, &schedule, now, chance) {
                    Next::Later { at, progress: next, .. } => {
                        prop_assert!(at > now, "time stands still");
                        prop_assert!(next.counted < attempts && next.counted <= next.failures);
                        (now, progress) = (at, next);
                    }
                    Next::GiveUp(_) => return Ok(()),
                    Next::Done => prop_assert!(false),
                }
            }
            // Only deferrals of a second each can go on for so long, and they end by age.
            prop_assert!(now.since(START) < schedule.age_max);
        }
    }
}
