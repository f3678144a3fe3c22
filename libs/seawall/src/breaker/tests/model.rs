//! The machine against a plain model: a struct with names instead of bits, lists instead of counts, and no packing.

use proptest::prelude::*;

use crate::breaker::machine::{Effect, Event, Judge, Rules, Settled, TRIPS, step};
use crate::breaker::word::{Place, Word};

/// What a stranger would write down after reading the documentation.
struct Model {
    place: Place,
    /// Rises with every transition: which tickets are current.
    phase: u64,
    since: u64,
    streak: u32,
    trips: u32,
    /// Probes that are out, lost ones included.
    probes: u32,
    /// When the oldest of the probes that overlap was admitted.
    overlap_from: u64,
    /// When the last of them was heard of, as far as it is remembered.
    lease_from: u64,
    good: u32,
    bad: u32,
}

impl Model {
    fn go(&mut self, place: Place, now: u64) {
        self.phase += 1;
        (self.place, self.since, self.streak) = (place, now, 0);
        (self.probes, self.good, self.bad) = (0, 0, 0);
        (self.overlap_from, self.lease_from) = (now, now);
    }

    fn open(&mut self, now: u64, rules: &Rules) {
        let next = (self.trips + 1).min(TRIPS as u32);
        let healthy = self.place != Place::HalfOpen && now - self.since >= rules.cooldowns[next as usize - 1];
        self.trips = if healthy { 1 } else { next };
        self.go(Place::Open, now);
    }

    fn close(&mut self, now: u64) {
        self.go(Place::Closed, now);
    }

    fn until(&self, rules: &Rules) -> u64 {
        self.since + rules.cooldowns[(self.trips.max(1) as usize) - 1]
    }

    fn lease_is_over(&self, now: u64, rules: &Rules) -> bool {
        self.place == Place::HalfOpen && now >= self.lease_from + rules.probe_timeout
    }

    /// What time alone decides.
    fn look(&mut self, now: u64, rules: &Rules) {
        if self.place == Place::Open && rules.automatic && now >= self.until(rules) {
            self.go(Place::HalfOpen, now);
        } else if self.lease_is_over(now, rules) && self.probes > 0 {
            self.open(now, rules);
        } else if self.lease_is_over(now, rules) && self.good > 0 && self.bad == 0 {
            self.close(now);
        }
    }

    fn admit(&mut self, now: u64, rules: &Rules) -> bool {
        match self.place {
            Place::Closed | Place::ForcedClosed | Place::Disabled => true,
            Place::ForcedOpen | Place::Ramping => false,
            Place::Open if now < self.until(rules) => false,
            Place::Open => {
                self.go(Place::HalfOpen, now);
                self.probes = 1;
                true
            }
            Place::HalfOpen => {
                let over = self.lease_is_over(now, rules);
                if over && self.probes > 0 {
                    self.open(now, rules);
                    return false;
                }
                if over && self.good > 0 && self.bad == 0 {
                    self.close(now);
                    return true;
                }
                if over {
                    (self.good, self.bad) = (0, 0);
                }
                let taken = match rules.judge {
                    Judge::Successes(_) => self.probes,
                    Judge::Rate(_) => self.probes + self.good + self.bad,
                };
                if taken >= rules.probes {
                    return false;
                }
                if self.probes == 0 {
                    (self.overlap_from, self.lease_from) = (now, now);
                }
                self.probes += 1;
                true
            }
        }
    }

    fn settle(&mut self, outcome: Settled, now: u64, rules: &Rules) {
        match (self.place, outcome) {
            (Place::Closed, Settled::Good) => self.streak = 0,
            (Place::Closed, Settled::Bad) => {
                self.streak += 1;
                if self.streak >= rules.streak {
                    self.open(now, rules);
                }
            }
            (Place::HalfOpen, _) => {
                self.probes -= 1;
                self.good += u32::from(outcome == Settled::Good);
                self.bad += u32::from(outcome == Settled::Bad);
                match rules.judge {
                    Judge::Successes(needed) => {
                        if self.bad > 0 {
                            self.open(now, rules);
                        } else if self.good >= needed {
                            self.close(now);
                        } else if outcome == Settled::Good {
                            // Remembered in quarters of a lease, and not for ever.
                            let quarter = (rules.probe_timeout / 4).max(1);
                            let quarters = ((now - self.overlap_from) / quarter).min(63);
                            self.lease_from = self.overlap_from + quarters * quarter;
                        }
                    }
                    Judge::Rate(rate) => {
                        let bad_share = f64::from(self.bad) / f64::from(rules.probes) * 1e6;
                        if self.bad > 0 && bad_share >= rate as f64 {
                            self.open(now, rules);
                        } else if self.good + self.bad >= rules.probes {
                            self.close(now);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Wait(u64),
    Admit,
    /// One of the tickets that are out comes back.
    Settle(usize, Settled),
    /// One of the tickets that are out is lost for ever.
    Lose(usize),
    Look,
    Reset,
    ForceOpen,
    ForceClosed,
    Disable,
}

fn acts() -> impl Strategy<Value = Act> {
    let outcome = prop_oneof![4 => Just(Settled::Good), 4 => Just(Settled::Bad), 1 => Just(Settled::Nothing)];
    prop_oneof![
        4 => (0u64..200).prop_map(Act::Wait),
        8 => Just(Act::Admit),
        8 => (any::<prop::sample::Index>(), outcome).prop_map(|(index, outcome)| Act::Settle(index.index(64), outcome)),
        1 => any::<prop::sample::Index>().prop_map(|index| Act::Lose(index.index(64))),
        2 => Just(Act::Look),
        1 => prop_oneof![
            6 => Just(Act::Reset),
            1 => Just(Act::ForceOpen),
            1 => Just(Act::ForceClosed),
            1 => Just(Act::Disable)
        ],
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let judge =
        prop_oneof![(1u32..5).prop_map(Judge::Successes), (100_000u64..=1_000_000).prop_map(Judge::Rate)];
    (1u32..6, 2u64..100, 1u32..4, 1u32..6, judge, 2u64..150, any::<bool>()).prop_map(
        |(streak, cooldown, growth, probes, judge, probe_timeout, automatic)| Rules {
            streak,
            cooldowns: std::array::from_fn(|trip| cooldown * u64::from(growth).pow(trip as u32).min(20)),
            jitter: 0,
            seed: 0,
            probes,
            judge,
            probe_timeout,
            ramp: 0,
            automatic,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// ENG-5, PRM-3: after every event the machine is where the model is, decides as the model does, has no more probes
    /// under way than allowed, takes late tickets for late; and whatever has happened, a call is let through again after
    /// the longest cooldown and one lease.
    #[test]
    fn eng_5_prm_3_the_machine_is_the_model(rules in rules(), script in prop::collection::vec(acts(), 1..120)) {
        let start = 1_000_000;
        let mut word = Word::new(Place::Closed, start);
        let mut model = Model {
            place: Place::Closed, phase: 0, since: start, streak: 0, trips: 0, probes: 0, overlap_from: start, lease_from: start,
            good: 0, bad: 0,
        };
        // Two events in one unit would make the stamp run ahead of the time, so time moves a little with each.
        let mut now = start + 1_000;
        let mut tickets: Vec<(u64, u64)> = Vec::new();
        for act in script {
            now += 2;
            match act {
                Act::Wait(units) => now += units,
                Act::Admit => {
                    let expected = model.admit(now, &rules);
                    let (next, effect) = step(word, Event::Admit { chance: 0 }, now, &rules);
                    prop_assert_eq!(effect == Effect::Admitted, expected, "{:?}", word);
                    if let Effect::Refused { until: Some(until) } = effect {
                        prop_assert!(until > now, "a refusal says to come back in the past");
                    }
                    word = next;
                    if expected {
                        tickets.push((word.stamp(), model.phase));
                    }
                }
                Act::Settle(index, outcome) => {
                    if tickets.is_empty() { continue }
                    let (stamp, phase) = tickets.swap_remove(index % tickets.len());
                    let (next, effect) = step(word, Event::Settle { stamp, outcome }, now, &rules);
                    if phase == model.phase {
                        // While probes follow one another, the stamp moves and the phase of the model does not.
                        if effect == Effect::Late {
                            prop_assert_eq!(word.place(), Place::HalfOpen);
                            prop_assert!(false, "a current ticket was taken for late: {:?}", word);
                        }
                        model.settle(outcome, now, &rules);
                    } else {
                        prop_assert_eq!((next, effect), (word, Effect::Late), "a late ticket changed something");
                    }
                    word = next;
                }
                Act::Lose(index) => {
                    if !tickets.is_empty() {
                        tickets.swap_remove(index % tickets.len());
                    }
                }
                Act::Look => {
                    model.look(now, &rules);
                    word = step(word, Event::Observe, now, &rules).0;
                }
                Act::Reset => {
                    model.trips = 0;
                    model.go(Place::Closed, now);
                    word = step(word, Event::Reset, now, &rules).0;
                }
                Act::ForceOpen => {
                    model.trips = 0;
                    model.go(Place::ForcedOpen, now);
                    word = step(word, Event::ForceOpen, now, &rules).0;
                }
                Act::ForceClosed => {
                    model.trips = 0;
                    model.go(Place::ForcedClosed, now);
                    word = step(word, Event::ForceClosed, now, &rules).0;
                }
                Act::Disable => {
                    model.trips = 0;
                    model.go(Place::Disabled, now);
                    word = step(word, Event::Disable, now, &rules).0;
                }
            }
            prop_assert_eq!(word.place(), model.place, "after {:?}", act);
            if word.place() == Place::HalfOpen {
                prop_assert_eq!((word.probes(), word.successes()), (model.probes, model.good));
                if let Judge::Rate(_) = rules.judge {
                    prop_assert_eq!(word.failures(), model.bad);
                }
                prop_assert!(word.probes() <= rules.probes, "more probes than allowed: {:?}", word);
            }
        }

        if word.place() != Place::ForcedOpen {
            // Nobody ever comes back with a ticket: it must let somebody through all the same.
            let mut admitted = false;
            for _ in 0..3 {
                now += rules.cooldowns[TRIPS - 1] + rules.probe_timeout;
                let (next, effect) = step(word, Event::Admit { chance: 0 }, now, &rules);
                admitted |= effect == Effect::Admitted;
                word = next;
            }
            prop_assert!(admitted, "wedged in {:?}", word);
        }
    }
}
