//! The table: every setting that a guard has in a file, with what it is, its default and what it does.
//!
//! Reading, the nearest known key, the defaults, what `settings()` prints, and the reference page all come from here.
//! A path is the same word as in a problem of [`GuardBuilder`](crate::GuardBuilder), so that what the builder refuses can
//! be shown where it was written.

/// One row.
#[derive(Debug)]
pub(super) struct Key {
    /// Below a guard or a base: `breaker.cooldown`.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// As one would write it. In brackets, if it follows from something else. Empty, if there is none.
    pub(super) default: &'static str,
    /// In words; the policy that it belongs to checks it.
    pub(super) range: &'static str,
    pub(super) doc: &'static str,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Holds other settings.
    Section(Section),
    /// A duration with a unit.
    Time,
    /// A duration with a unit, or `none`.
    TimeOrNone,
    /// A share in percent.
    Share,
    /// A whole number.
    Count,
    /// Any number.
    Number,
    Switch,
    /// One of these.
    Word(&'static [&'static str]),
    /// One or more of these.
    Words(&'static [&'static str]),
    /// Names of faults.
    Names,
    /// Sets of statuses like `429,500-599`, or `none`.
    Statuses,
    /// Names of bases; followed before anything else is looked at.
    Bases,
}

/// What it means that a section is not there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Section {
    /// Off, until somebody writes it.
    Off,
    /// On together with the section around it; `none` switches it off.
    On,
    /// Always there: it only groups.
    Part,
}

pub(super) const PRESETS: &[&str] = &["high-traffic", "development", "critical"];
pub(super) const CLASSES: &[&str] = &["business", "io", "timeout", "protocol", "system"];
const FALLBACK_ON: &[&str] = &["business", "io", "timeout", "protocol", "system", "rejected"];
pub(super) const FAULTS: &[&str] =
    &["io", "unreachable", "timeout", "protocol", "throttled", "system", "business"];

const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, range: "", doc }
}

use Kind::{Bases, Count, Names, Number, Share, Statuses, Switch, Time, TimeOrNone, Word, Words};

const OFF: Kind = Kind::Section(Section::Off);
const ON: Kind = Kind::Section(Section::On);
const PART: Kind = Kind::Section(Section::Part);

#[rustfmt::skip]
pub(super) const TABLE: &[Key] = &[
    key("extends", Bases, "", "The base under `configs` that this one builds on, or a list of them; a later one wins over an earlier one."),
    key("preset", Word(PRESETS), "", "Usual values for a kind of peer. It lies under everything else that is written."),
    key("health", Switch, "false", "Whether the guard is listed where the health of the process is asked for."),
    key("keys_max", Count, "", "Makes one guard for each key (host, tenant), and at most so many.").within("1 to 1000000"),
    key("call_timeout", TimeOrNone, "(all attempts and waits, or 10s)", "How long a call may take with all its attempts and waits.").within("above zero, and at least `attempt_timeout`"),
    key("attempt_timeout", TimeOrNone, "", "How long one attempt may take.").within("above zero"),

    key("retry", OFF, "", "Tries a failed call again. See [retry](../libs/seawall/docs/retry.md)."),
    key("retry.max_attempts", Count, "3", "Attempts in all, the first one included.").within("1 to 1000"),
    key("retry.backoff", PART, "", "How long to wait between attempts. See [back-off](../libs/seawall/docs/backoff.md)."),
    key("retry.backoff.shape", Word(&["exponential", "linear", "constant"]), "exponential", "How waits grow."),
    key("retry.backoff.base", Time, "1s", "The first wait.").within("up to `cap`"),
    key("retry.backoff.multiplier", Number, "2", "What each wait is multiplied with; for an exponential back-off only.").within("1 to 1000"),
    key("retry.backoff.cap", Time, "60s", "The longest wait.").within("above zero"),
    key("retry.backoff.jitter", Word(&["full", "equal", "decorrelated", "none"]), "full", "How much of a wait is left to chance."),
    key("retry.backoff.throttled_base", Time, "(5 times `base`)", "The first wait after a peer asked for fewer calls without saying when."),
    key("retry.on_classes", Words(CLASSES), "(all that may pass)", "Only transient faults of these classes are tried again."),
    key("retry.on_status", Statuses, "(those that may pass)", "Of answers with a status exactly these are tried again: `429,500-599`, or `none`. What counts against the breaker stays."),
    key("retry.on_names", Names, "", "Faults with these names are tried again, and others only as far as `on_classes` or `on_status` ask for them."),
    key("retry.ignore_names", Names, "", "Faults with these names are never tried again."),
    key("retry.on_rejection", Switch, "false", "Also tries again after a policy refused."),
    key("retry.leave_to_outer", Switch, "false", "Does not try again where a guard further out already does."),
    key("retry.retry_after_cap", Time, "60s", "The longest wait that a peer may ask for by `Retry-After`."),
    key("retry.budget", ON, "", "How many retries all callers may make together; `none` for no bound. See [budget](../libs/seawall/docs/budget.md)."),
    key("retry.budget.share_of_calls", Share, "10%", "Retries may be this share of the calls in the window.").within("0% to 100%"),
    key("retry.budget.window", Time, "10s", "The while over which calls and retries are counted.").within("100ms to 1h"),
    key("retry.budget.floor_per_second", Number, "3", "While the window holds fewer than 100 calls, this many retries a second are allowed, and at once what a window brings. The share repays them later.").within("0 to 1000000"),
    key("retry.budget.tokens", Number, "10", "gRPC's form instead: a bucket of so many tokens, of which each failure takes one.").within("1 to 1000"),
    key("retry.budget.token_ratio", Number, "0.1", "What each first attempt that succeeds puts back into the bucket.").within("0.001 to 1000"),

    key("breaker", OFF, "", "Stops calling a peer that is down. See [breaker](../libs/seawall/docs/breaker.md)."),
    key("breaker.consecutive_failures", Count, "5", "Opens after so many failures in a row.").within("1 to 262143"),
    key("breaker.failure_rate", Share, "50%", "Opens at this share of failures in a window instead.").within("above 0%"),
    key("breaker.over_calls", Count, "100", "The window: the last so many calls.").within("1 to 100000"),
    key("breaker.over_time", Time, "", "The window: the calls of the last while instead.").within("20ms or more"),
    key("breaker.minimum_calls", Count, "(20, or the whole window if it is smaller)", "Below so many calls in the window no rate counts.").within("1 to the window"),
    key("breaker.slow_after", Time, "", "Calls that take this long are slow, and too many of them open it too. Needs a window.").within("above zero"),
    key("breaker.slow_rate", Share, "100%", "The share of slow calls that opens it; with `slow_after` only.").within("above 0%"),
    key("breaker.cooldown", Time, "30s", "How long it refuses before it probes.").within("2ms or more"),
    key("breaker.cooldown_growth", Number, "1", "Each further trip has a cooldown this many times longer.").within("1 to 100"),
    key("breaker.cooldown_max", Time, "10m", "The longest cooldown, where it grows.").within("`cooldown` or more"),
    key("breaker.cooldown_jitter", Share, "0%", "Up to this share of the cooldown is added by chance.").within("0% to 100%"),
    key("breaker.probes", Count, "1", "Probes at once while half-open.").within("1 to 63"),
    key("breaker.close_after", Count, "1", "So many successful probes close it.").within("1 to 63"),
    key("breaker.judge_probes", Word(&["each", "together"]), "each", "`each`: the first failed probe opens it again. `together`: all `probes` are judged by the failure rate."),
    key("breaker.probe_timeout", Time, "60s", "A probe of which nothing was heard for this long has failed.").within("2ms or more"),
    key("breaker.ramp", Time, "0s", "After closing, the share of calls that pass grows over this time."),
    key("breaker.automatic_half_open", Switch, "false", "Looking at an open circuit whose cooldown is over makes it half-open, without waiting for a call."),
    key("breaker.abandoned_after", Time, "(the smallest of `slow_after` and half of each timeout)", "A call that is dropped after this long counts as a failure."),
    key("breaker.scope", Word(&["attempt", "call"]), "attempt", "What it counts: each attempt, or each call with all its attempts."),
    key("breaker.record_names", Names, "", "Only faults with these names are failures; others count as successes."),
    key("breaker.ignore_names", Names, "", "Faults with these names are neither failures nor successes."),

    key("rate_limit", OFF, "", "No more calls than agreed. See [rate limit](../libs/seawall/docs/rate.md)."),
    key("rate_limit.calls", Count, "", "So many calls per period. Must be given.").within("1 or more"),
    key("rate_limit.per", Time, "1s", "The period.").within("1ms to 1d"),
    key("rate_limit.burst", Count, "(as `calls`)", "So many may come at once after a pause.").within("1 or more"),
    key("rate_limit.max_wait", Time, "0s", "How long a call may wait for its turn; less than a `call_timeout` that is set.").within("0s to 1h"),

    key("bulkhead", OFF, "", "No more calls at once than one can afford. See [bulkhead](../libs/seawall/docs/bulkhead.md)."),
    key("bulkhead.max_calls", Count, "20", "Calls at once.").within("1 to 1000000"),
    key("bulkhead.max_waiting", Count, "(20 with a `max_wait`, else 0)", "So many may wait for a place.").within("0 to 1000000"),
    key("bulkhead.max_wait", Time, "0s", "How long a call may wait for a place.").within("below a `call_timeout` that is set"),
    key("bulkhead.adaptive", OFF, "", "The limit finds itself, starting from `max_calls`."),
    key("bulkhead.adaptive.by", Word(&["latency", "timeouts"]), "latency", "What it goes by: answers that take longer than they used to, or timeouts."),
    key("bulkhead.adaptive.min", Count, "1", "Never fewer.").within("1 to `max_calls`"),
    key("bulkhead.adaptive.max", Count, "100", "Never more.").within("`max_calls` or more"),

    key("hedge", OFF, "", "A second attempt for one that takes too long, in calls that ask for it. See [hedging](../libs/seawall/docs/hedge.md)."),
    key("hedge.after", Time, "", "The second attempt starts after this long.").within("above zero, and below the timeouts"),
    key("hedge.percentile", Share, "", "It starts when the first has taken longer than this share of the recent answers instead.").within("50% to just below 100%"),
    key("hedge.until_known", Time, "", "The delay until enough answers are known; must be given with `percentile`.").within("above zero, and below the timeouts"),
    key("hedge.max_hedges", Count, "1", "The number of attempts that may start beside the first, each one delay after the one before.").within("1 to 10"),

    key("fallback", ON, "", "When the fallbacks that calls bring along stand in; `none` for never. See [fallback](../libs/seawall/docs/fallback.md)."),
    key("fallback.on", Words(FALLBACK_ON), "[io, timeout, protocol, system, rejected]", "For faults of these classes, and for rejections."),

    key("chaos", OFF, "", "Trouble on purpose. See [chaos](../libs/seawall/docs/chaos.md)."),
    key("chaos.enabled", Switch, "false", "Whether it makes trouble from the start, or waits until it is switched on."),
    key("chaos.fault_rate", Share, "0%", "This share of the attempts fails.").within("at most 100% with the other two"),
    key("chaos.fault", Word(FAULTS), "io", "With this fault."),
    key("chaos.hang_rate", Share, "0%", "This share of the attempts never answers.").within("at most 100% with the other two"),
    key("chaos.slow_rate", Share, "0%", "This share of the attempts starts later.").within("at most 100% with the other two"),
    key("chaos.slow_by", Time, "0s", "By this much."),
];

/// Two ways to say one thing. In one section they contradict each other; across layers the upper one replaces the
/// lower one. The first is the one that holds if neither is written, where it has defaults.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) ways: [&'static [Way]; 2],
    /// Why both can't be.
    pub(super) why: &'static str,
}

/// A setting, and the words that make it this way. No words: any value does.
#[derive(Debug)]
pub(super) struct Way(pub(super) &'static str, pub(super) &'static [&'static str]);

#[rustfmt::skip]
pub(super) const CHOICES: &[Choice] = &[
    Choice {
        ways: [
            &[Way("breaker.consecutive_failures", &[])],
            &[Way("breaker.failure_rate", &[]), Way("breaker.over_calls", &[]), Way("breaker.over_time", &[]),
              Way("breaker.minimum_calls", &[]), Way("breaker.slow_after", &[]), Way("breaker.slow_rate", &[])],
        ],
        why: "a circuit opens after failures in a row or at a rate, not both",
    },
    Choice {
        ways: [&[Way("breaker.over_calls", &[])], &[Way("breaker.over_time", &[])]],
        why: "a window is a number of calls or a time, not both",
    },
    Choice {
        ways: [&[Way("breaker.close_after", &[])], &[Way("breaker.judge_probes", &["together"])]],
        why: "probes that are judged together need no number of successes",
    },
    Choice {
        ways: [
            &[Way("retry.backoff.multiplier", &[])],
            &[Way("retry.backoff.shape", &["linear", "constant"])],
        ],
        why: "only an exponential back-off multiplies",
    },
    Choice {
        ways: [
            &[Way("retry.budget.share_of_calls", &[]), Way("retry.budget.window", &[]), Way("retry.budget.floor_per_second", &[])],
            &[Way("retry.budget.tokens", &[]), Way("retry.budget.token_ratio", &[])],
        ],
        why: "a budget is a share of the calls or a bucket of tokens, not both",
    },
    Choice {
        ways: [&[Way("hedge.after", &[])], &[Way("hedge.percentile", &[]), Way("hedge.until_known", &[])]],
        why: "a second attempt starts after a fixed delay or by a percentile, not both",
    },
];

/// The row of a path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| key.path == path)
}

impl Key {
    const fn within(mut self, range: &'static str) -> Self {
        self.range = range;
        self
    }

    /// The path of the section around it, empty for the top.
    pub(super) fn parent(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    /// Its own name, without the sections.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// Its default as text, if it has one that does not follow from something else.
    pub(super) fn fixed_default(&self) -> Option<&'static str> {
        Some(self.default).filter(|default| !default.is_empty() && !default.starts_with('('))
    }
}

/// The settings directly in a section, in the order of the table.
pub(super) fn children(section: &str) -> impl Iterator<Item = &'static Key> {
    TABLE.iter().filter(move |key| key.parent() == section && key.path != section)
}
