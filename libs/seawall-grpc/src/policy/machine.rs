//! The rules of A6, step by step. Time is an argument: the time since the call began.

use std::time::Duration;

use super::config::{CallPolicy, HedgingPolicy, RetryPolicy};

/// The jitter of A6: every pause is multiplied with a number between 0.8 and 1.2.
const JITTER: (f64, f64) = (0.8, 0.4);
/// The first pause before a request is given to a connection again that could not be made or was closed. gRPC waits a second
/// before it connects again; a channel of tonic connects at once, and so this is only to keep a loop from running hot.
const RESEND_PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest of these pauses: a call that waits for its server costs one connection attempt in a second.
const RESEND_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a request that never left the client is given to the channel again, unless the method waits for a connection.
/// Connections that close this often before they take a request are an outage.
const RESENDS_MAX: u32 = 10;

/// How far a failed attempt came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// No connection could be made.
    NoConnection,
    /// The connection closed before it took the request.
    Unsent,
    /// The server refused the stream before its application saw it.
    Refused,
    /// The server's application may have seen it.
    Seen,
}

/// What the server says about the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pushback {
    Nothing,
    After(Duration),
    Stop,
}

/// An attempt that failed before the call was committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) reach: Reach,
    pub(crate) pushback: Pushback,
}

/// Why a failure is given to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The status is not one that the policy goes on after.
    Fatal,
    /// All attempts are spent.
    Exhausted,
    /// Too few tokens are left for another attempt.
    Throttled,
    /// The server asked for no more attempts.
    Pushback,
    /// The call is committed to one attempt.
    Committed,
}

/// What to do after a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Send the same attempt again at once. It is not counted.
    Resend,
    /// Send the next attempt at once.
    Send,
    /// Wait for the next point in time, or for the attempts in flight.
    Wait,
    /// Give this failure to the caller, and cancel what is in flight.
    Return(Reason),
}

/// What to do when a point in time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Nothing,
    Send,
    Resend,
    /// A hedge was due, but too few tokens are left.
    Throttled,
}

/// The state of one call.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Machine {
    /// Attempts that were sent and are counted.
    attempts: u32,
    in_flight: u32,
    /// Pauses since the beginning or the last pushback: the exponent of the back-off.
    pauses: u32,
    next_at: Option<Duration>,
    resend_at: Option<Duration>,
    /// Requests that wait for `resend_at`.
    to_resend: u32,
    resends: u32,
    was_refused: bool,
    /// Why no more attempts may be sent, if so.
    stopped: Option<Reason>,
}

impl Machine {
    /// The first attempt is sent now.
    pub(crate) fn start(policy: &CallPolicy) -> Self {
        let mut machine = Machine::default();
        machine.send(policy, Duration::ZERO);
        machine
    }

    /// How many attempts were sent, without those that the server's application never saw.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When [`due`](Machine::due) has to be called.
    pub(crate) fn wakes_at(&self) -> Option<Duration> {
        self.next_at.into_iter().chain(self.resend_at).min()
    }

    /// When the next counted attempt follows, if nothing else is under way.
    pub(crate) fn retries_at(&self) -> Option<Duration> {
        self.next_at.filter(|_| self.in_flight == 0 && self.to_resend == 0)
    }

    /// The call is committed to one attempt: no other one is in flight any more, and none follows.
    pub(crate) fn commit(&mut self) {
        (self.next_at, self.resend_at, self.to_resend) = (None, None, 0);
        (self.in_flight, self.stopped) = (1, Some(Reason::Committed));
    }

    /// Looks at what is due. Call it until it says `Nothing`.
    pub(crate) fn due(&mut self, policy: &CallPolicy, now: Duration, has_tokens: bool) -> Due {
        if self.resend_at.is_some_and(|at| at <= now) {
            (self.to_resend, self.in_flight) = (self.to_resend - 1, self.in_flight + 1);
            if self.to_resend == 0 {
                self.resend_at = None;
            }
            return Due::Resend;
        }
        if self.next_at.is_none_or(|at| at > now) {
            return Due::Nothing;
        }
        // The tokens for a retry were counted when the attempt before it failed.
        if matches!(policy, CallPolicy::Hedging(_)) && !has_tokens {
            self.stop(Reason::Throttled);
            return Due::Throttled;
        }
        self.send(policy, now);
        Due::Send
    }

    /// What the server's application never saw is sent again, whatever the policy says, and counts nowhere.
    ///
    /// `waits` is `waitForReady`: the call waits for a connection for as long as its deadline allows.
    pub(crate) fn resend(
        &mut self,
        failure: Failure,
        now: Duration,
        waits: bool,
        chance: f64,
    ) -> Option<Step> {
        if self.stopped == Some(Reason::Committed) {
            return None;
        }
        let step = match failure.reach {
            Reach::Refused if !self.was_refused => {
                self.was_refused = true;
                Step::Resend
            }
            Reach::Unsent if self.resends == 0 => Step::Resend,
            Reach::Unsent if waits || self.resends < RESENDS_MAX => Step::Wait,
            Reach::NoConnection if waits => Step::Wait,
            _ => return None,
        };
        if failure.reach != Reach::Refused {
            self.resends = self.resends.saturating_add(1);
        }
        if step == Step::Wait {
            let pause =
                pause(RESEND_PAUSE_FIRST, 2.0, RESEND_PAUSE_MAX, self.resends.saturating_sub(1), chance);
            self.resend_at = Some(self.resend_at.map_or(now + pause, |at| at.min(now + pause)));
            (self.to_resend, self.in_flight) = (self.to_resend + 1, self.in_flight - 1);
        }
        Some(step)
    }

    /// An attempt failed, and the server's application may have seen it.
    pub(crate) fn failed(
        &mut self,
        policy: &CallPolicy,
        failure: Failure,
        now: Duration,
        has_tokens: bool,
        chance: f64,
    ) -> Step {
        self.in_flight -= 1;
        if self.stopped == Some(Reason::Committed) {
            return Step::Return(Reason::Committed);
        }
        match policy {
            CallPolicy::None => Step::Return(Reason::Fatal),
            CallPolicy::Retry(retry) => self.retry(retry, failure, now, has_tokens, chance),
            CallPolicy::Hedging(hedging) => self.hedge(policy, hedging, failure, now, has_tokens),
        }
    }

    fn retry(
        &mut self,
        retry: &RetryPolicy,
        failure: Failure,
        now: Duration,
        has_tokens: bool,
        chance: f64,
    ) -> Step {
        if !retry.retryable.contains(failure.code) {
            return Step::Return(Reason::Fatal);
        }
        if failure.pushback == Pushback::Stop {
            return Step::Return(Reason::Pushback);
        }
        if !has_tokens {
            return Step::Return(Reason::Throttled);
        }
        if self.attempts >= retry.max_attempts {
            return Step::Return(Reason::Exhausted);
        }
        let wait = match failure.pushback {
            Pushback::After(wait) => {
                self.pauses = 0;
                wait
            }
            _ => {
                self.pauses += 1;
                let (first, most) = (retry.initial_backoff, retry.max_backoff);
                pause(first, retry.backoff_multiplier, most, self.pauses - 1, chance)
            }
        };
        self.next_at = Some(now.saturating_add(wait));
        Step::Wait
    }

    fn hedge(
        &mut self,
        policy: &CallPolicy,
        hedging: &HedgingPolicy,
        failure: Failure,
        now: Duration,
        has_tokens: bool,
    ) -> Step {
        if !hedging.non_fatal.contains(failure.code) {
            return Step::Return(Reason::Fatal);
        }
        if failure.pushback == Pushback::Stop {
            self.stop(Reason::Pushback);
        } else if !has_tokens {
            self.stop(Reason::Throttled);
        } else if self.attempts >= hedging.max_attempts {
            self.stop(Reason::Exhausted);
        }
        match (self.stopped, failure.pushback) {
            (Some(reason), _) if self.in_flight == 0 && self.to_resend == 0 => Step::Return(reason),
            (Some(_), _) => Step::Wait,
            (None, Pushback::After(wait)) => {
                self.next_at = Some(now.saturating_add(wait));
                Step::Wait
            }
            (None, _) => {
                self.send(policy, now);
                Step::Send
            }
        }
    }

    fn send(&mut self, policy: &CallPolicy, now: Duration) {
        (self.attempts, self.in_flight) = (self.attempts + 1, self.in_flight + 1);
        self.next_at = match policy {
            CallPolicy::Hedging(hedging) if self.attempts < hedging.max_attempts => {
                Some(now.saturating_add(hedging.delay))
            }
            _ => None,
        };
    }

    /// No more attempts are sent. The first reason stays: it is the one that the caller should hear.
    fn stop(&mut self, reason: Reason) {
        self.next_at = None;
        self.stopped = self.stopped.or(Some(reason));
    }
}

/// `min(first * multiplier^n, most)`, with the jitter of A6. `chance` is between 0 and 1.
fn pause(first: Duration, multiplier: f64, most: Duration, n: u32, chance: f64) -> Duration {
    let exponent = i32::try_from(n).unwrap_or(i32::MAX);
    let seconds = (first.as_secs_f64() * multiplier.powi(exponent)).min(most.as_secs_f64());
    Duration::try_from_secs_f64(seconds * (JITTER.0 + JITTER.1 * chance)).unwrap_or(most)
}
