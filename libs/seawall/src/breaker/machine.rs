//! What a circuit does: a pure function of its word, an event and the time.
//!
//! The shell applies it by compare-and-swap; the simulator and the property tests call it on a local variable.
//! Windows live outside of the word: the shell counts in them and reports [`Event::Tripped`].

use super::word::{PROBES_MAX, Place, Word};

/// The settings that the machine needs, in units and plain numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rules {
    /// Failures in a row that open the circuit; 0 if only a window does.
    pub(crate) streak: u32,
    /// The cooldown of the first trip, the second, …, of the last that is counted.
    pub(crate) cooldowns: [u64; TRIPS],
    /// Up to this much of the cooldown is added by chance, in millionths.
    pub(crate) jitter: u64,
    pub(crate) seed: u64,
    /// Probes at once, or in all if they are judged together.
    pub(crate) probes: u32,
    pub(crate) judge: Judge,
    pub(crate) probe_timeout: u64,
    /// How long after closing only a growing share passes; 0 for none.
    pub(crate) ramp: u64,
    /// Whether looking at an open circuit whose cooldown is over makes it half-open.
    pub(crate) automatic: bool,
}

/// Trips are counted from 1 up to here, and then stay.
pub(crate) const TRIPS: usize = 7;

/// How half-open ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Judge {
    /// After this many successes it closes; the first failure opens it.
    Successes(u32),
    /// All probes are judged together: this rate of failures (in millionths) opens it.
    Rate(u64),
}

/// What happens to a circuit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Event {
    /// Somebody wants to pass. `chance` decides while ramping.
    Admit {
        chance: u64,
    },
    /// A ticket comes back.
    Settle {
        stamp: u64,
        outcome: Settled,
    },
    /// The window of this phase says that it is enough.
    Tripped {
        stamp: u64,
    },
    /// Somebody looks.
    Observe,
    Reset,
    ForceOpen,
    ForceClosed,
    Disable,
    /// A circuit that was open before a restart, with this much of its cooldown left.
    Reopen {
        left: u64,
        trips: u32,
    },
    /// A circuit that was half-open before a restart.
    Probe {
        trips: u32,
    },
    /// Probes are judged in another way from now on.
    Rejudge,
    /// Failures in a row do not count from now on.
    ForgetStreak,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settled {
    Good,
    Bad,
    /// Neither heals nor harms, but frees the probe.
    Nothing,
}

/// What the shell has to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Admitted,
    /// Come back at this time, if anybody knows.
    Refused {
        until: Option<u64>,
    },
    /// The ticket was of an earlier phase.
    Late,
    None,
}

/// The one transition function.
#[inline]
pub(crate) fn step(word: Word, event: Event, now: u64, rules: &Rules) -> (Word, Effect) {
    match event {
        Event::Admit { chance } => admit(word, chance, now, rules),
        Event::Settle { stamp, .. } | Event::Tripped { stamp } if stamp != word.stamp() => {
            (word, Effect::Late)
        }
        Event::Settle { outcome, .. } => (settle(word, outcome, now, rules), Effect::None),
        Event::Tripped { .. } => match word.place() {
            Place::Closed | Place::Ramping => (open(word, now, rules), Effect::None),
            _ => (word, Effect::None),
        },
        Event::Observe => (observe(word, now, rules), Effect::None),
        Event::Reset => (enter(word, Place::Closed, now), Effect::None),
        Event::ForceOpen => (enter(word, Place::ForcedOpen, now), Effect::None),
        Event::ForceClosed => (enter(word, Place::ForcedClosed, now), Effect::None),
        Event::Disable => (enter(word, Place::Disabled, now), Effect::None),
        Event::Rejudge if word.place() == Place::HalfOpen => (half_open(word, now), Effect::None),
        Event::ForgetStreak if matches!(word.place(), Place::Closed | Place::Ramping) => {
            (word.with_streak(0), Effect::None)
        }
        Event::Rejudge | Event::ForgetStreak => (word, Effect::None),
        Event::Probe { trips } => (enter(word, Place::HalfOpen, now).with_trips(trips), Effect::None),
        Event::Reopen { left, trips } => {
            let stamp = reopening(now, left, trips, rules).max(word.stamp() + 1);
            (Word::new(Place::Open, stamp).with_trips(trips), Effect::None)
        }
    }
}

#[inline]
fn admit(word: Word, chance: u64, now: u64, rules: &Rules) -> (Word, Effect) {
    match word.place() {
        Place::Closed | Place::ForcedClosed | Place::Disabled => (word, Effect::Admitted),
        Place::Open => {
            let until = opens_until(word, rules);
            if now < until {
                return (word, Effect::Refused { until: Some(until) });
            }
            (half_open(word, now).with_counts(1, 0, 0), Effect::Admitted)
        }
        Place::HalfOpen => probe(word, now, rules),
        Place::Ramping => {
            let passed = now.saturating_sub(word.stamp());
            if passed >= rules.ramp {
                return (word.with_place(Place::Closed), Effect::Admitted);
            }
            // The share that passes grows evenly from nearly none to all.
            let bar = u128::from(passed + 1) * u128::from(u64::MAX) / u128::from(rules.ramp + 1);
            if u128::from(chance) <= bar {
                (word, Effect::Admitted)
            } else {
                (word, Effect::Refused { until: Some(word.stamp() + rules.ramp) })
            }
        }
        Place::ForcedOpen => (word, Effect::Refused { until: None }),
    }
}

fn probe(word: Word, now: u64, rules: &Rules) -> (Word, Effect) {
    let (under_way, good, bad) = (word.probes(), word.successes(), bad_probes(word, rules));
    let lease = lease_end(word, rules);
    if under_way > 0 && now >= lease {
        // A probe that nobody has heard of for this long has failed: it hangs, or its ticket was lost.
        let word = open(word, now, rules);
        return (word, Effect::Refused { until: Some(opens_until(word, rules)) });
    }
    if under_way == 0 && now >= lease {
        // Nobody has called for long. What is known is good, or half-open begins anew.
        if good > 0 && bad == 0 {
            return (close(word, now, rules), Effect::Admitted);
        }
        return (half_open(word, now).with_counts(1, 0, 0), Effect::Admitted);
    }
    let taken = match rules.judge {
        Judge::Successes(_) => under_way,
        Judge::Rate(_) => under_way + good + bad,
    };
    if taken >= rules.probes {
        return (word, Effect::Refused { until: Some(lease) });
    }
    // While no probe is under way, no ticket is out that a new stamp could make late: each probe then has
    // the whole lease for itself.
    if under_way == 0 {
        return (word.restamped(now).with_counts(1, good, bad), Effect::Admitted);
    }
    (word.with_counts(under_way + 1, good, word.failures()), Effect::Admitted)
}

/// When the probes under way have been silent for too long.
///
/// Each answer renews the lease of those that are still out. Where the first failed probe decides, nobody has to count
/// failures, and that field holds how far the lease was renewed, in quarters; where probes are judged together there are only
/// so many, and the lease of the first is the lease of all that overlap.
fn lease_end(word: Word, rules: &Rules) -> u64 {
    let renewed = match rules.judge {
        Judge::Successes(_) => u64::from(word.failures()) * quarter(rules),
        Judge::Rate(_) => 0,
    };
    word.stamp() + rules.probe_timeout + renewed
}

fn quarter(rules: &Rules) -> u64 {
    (rules.probe_timeout / 4).max(1)
}

/// Failed probes, where they are counted.
fn bad_probes(word: Word, rules: &Rules) -> u32 {
    match rules.judge {
        Judge::Successes(_) => 0,
        Judge::Rate(_) => word.failures(),
    }
}

#[inline]
fn settle(word: Word, outcome: Settled, now: u64, rules: &Rules) -> Word {
    match (word.place(), outcome) {
        (Place::Closed | Place::Ramping, Settled::Good) => {
            if rules.streak == 0 || word.streak() == 0 {
                word
            } else {
                word.with_streak(0)
            }
        }
        (Place::Closed | Place::Ramping, Settled::Bad) if rules.streak > 0 => {
            let streak = word.streak() + 1;
            if streak >= rules.streak { open(word, now, rules) } else { word.with_streak(streak) }
        }
        (Place::HalfOpen, _) => settle_probe(word, outcome, now, rules),
        _ => word,
    }
}

fn settle_probe(word: Word, outcome: Settled, now: u64, rules: &Rules) -> Word {
    let probes = word.probes().saturating_sub(1);
    let good = word.successes() + u32::from(outcome == Settled::Good);
    let bad = bad_probes(word, rules) + u32::from(outcome == Settled::Bad);
    match rules.judge {
        Judge::Successes(_) if bad > 0 => open(word, now, rules),
        Judge::Successes(needed) if good >= needed => close(word, now, rules),
        Judge::Rate(rate) => {
            let of_all = u64::from(rules.probes);
            if bad > 0 && u64::from(bad) * 1_000_000 >= rate * of_all {
                // No answer of the remaining probes can change the verdict.
                open(word, now, rules)
            } else if u64::from(good + bad) >= of_all {
                close(word, now, rules)
            } else {
                word.with_counts(probes, good, bad)
            }
        }
        Judge::Successes(_) => {
            let renewed =
                (now.saturating_sub(word.stamp()) / quarter(rules)).min(u64::from(PROBES_MAX)) as u32;
            word.with_counts(probes, good, if outcome == Settled::Good { renewed } else { word.failures() })
        }
    }
}

fn observe(word: Word, now: u64, rules: &Rules) -> Word {
    match word.place() {
        Place::Open if rules.automatic && now >= opens_until(word, rules) => half_open(word, now),
        Place::Ramping if now.saturating_sub(word.stamp()) >= rules.ramp => word.with_place(Place::Closed),
        Place::HalfOpen if now >= lease_end(word, rules) => {
            if word.probes() > 0 {
                open(word, now, rules)
            } else if word.successes() > 0 && bad_probes(word, rules) == 0 {
                close(word, now, rules)
            } else {
                // Nothing is under way and nothing is known: the next call is a probe, so it is not stuck.
                word
            }
        }
        _ => word,
    }
}

/// When a circuit opened of whose cooldown this much is left, and never more than a whole one. The jitter of a cooldown depends
/// on that very time, so one is looked for that fits to a thousandth.
fn reopening(now: u64, left: u64, trips: u32, rules: &Rules) -> u64 {
    let opened_at = |stamp| Word::new(Place::Open, stamp).with_trips(trips);
    let shortest = rules.cooldowns[(trips as usize).clamp(1, TRIPS) - 1];
    let longest = shortest + (u128::from(shortest) * u128::from(rules.jitter) / 1_000_000) as u64;
    let until = now + left.min(longest);
    let near = (shortest / 1_000).max(1);
    (until.saturating_sub(longest)..=until.saturating_sub(shortest))
        .rev()
        .take(1_000_000)
        .find(|stamp| opens_until(opened_at(*stamp), rules).abs_diff(until) <= near)
        .unwrap_or(until.saturating_sub(shortest))
}

fn enter(word: Word, place: Place, now: u64) -> Word {
    Word::new(place, word.next_stamp(now))
}

fn half_open(word: Word, now: u64) -> Word {
    enter(word, Place::HalfOpen, now).with_trips(word.trips())
}

fn close(word: Word, now: u64, rules: &Rules) -> Word {
    let place = if rules.ramp > 0 { Place::Ramping } else { Place::Closed };
    enter(word, place, now).with_trips(word.trips())
}

fn open(word: Word, now: u64, rules: &Rules) -> Word {
    let opened = enter(word, Place::Open, now);
    let again = opened.with_trips(word.trips() + 1);
    // Healthy for as long as it would be open now: that is a new trouble, not the old one.
    let healed =
        word.place() != Place::HalfOpen && now.saturating_sub(word.stamp()) >= cooldown(again, rules);
    if healed { opened.with_trips(1) } else { again }
}

/// When an open circuit lets the first probe through.
pub(crate) fn opens_until(word: Word, rules: &Rules) -> u64 {
    word.stamp() + cooldown(word, rules)
}

#[inline]
fn cooldown(word: Word, rules: &Rules) -> u64 {
    let trip = (word.trips() as usize).clamp(1, TRIPS);
    let cooldown = rules.cooldowns[trip - 1];
    if rules.jitter == 0 {
        return cooldown;
    }
    // Chance without a generator: the stamp is different for each trip and each circuit has its own seed.
    let chance = crate::stats::spread(rules.seed ^ word.stamp()) % (rules.jitter + 1);
    cooldown + (u128::from(cooldown) * u128::from(chance) / 1_000_000) as u64
}
