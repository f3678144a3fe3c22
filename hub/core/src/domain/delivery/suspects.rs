//! Crash suspects: deliveries whose handling panics or ends the process, again and again.
//!
//! # Panics
//! A panic is known to belong to its delivery. It is a failed attempt, and after [`PANICS_MAX`] of them the delivery becomes a
//! dead letter, whatever its schedule says.
//!
//! # Crashes
//! A process that ends does not say which delivery it was, or whether it was one at all: somebody may have killed it. So
//! deliveries that were claimed at a crash are on *probation* in the next process. While the process handles such a delivery, in a
//! [`HandlingStep`], a mark of that step is on disk; there is no mark while the delivery waits for its service or in a queue. The
//! mark outlives the process, so after the next crash the marks name the few suspects, at most one for each thread. A suspect that
//! a crash counts against is handled while no other suspect is, so that no other one is named because of it. [`CRASHES_MAX`]
//! crashes in the same step are proof, and the delivery is quarantined. A step that ended before the crash clears the delivery,
//! and so does any outcome.
//!
//! # Why three?
//! A kill from outside falls into a step now and then: a step takes a fraction of a millisecond. Three times in a row for the same
//! delivery, with no step of it that ended in between, is not chance.
//!
//! # Why does the first crash count?
//! Nothing is marked before the first crash, so that a healthy hub pays nothing for this. If [few](FEW) were claimed, it is likely
//! that it was one of them. So a delivery that ends the process is found after three crashes if it is nearly alone, and after
//! four among thousands.

use std::fmt;

/// The number of panics after which a delivery becomes a dead letter.
pub const PANICS_MAX: u32 = 3;
/// The number of crashes in the same step after which a delivery becomes a dead letter.
pub const CRASHES_MAX: u32 = 3;
/// The number of claimed deliveries up to which a crash counts against each of them, without any mark.
pub const FEW: u32 = 8;

/// A step of handling a delivery that can crash the process, because it waits for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlingStep {
    /// The process reads the stored request.
    Load,
    /// The process writes the request, or reads the response.
    Send,
    /// The process writes the outcome to the store.
    Record,
}

impl HandlingStep {
    pub const ALL: [HandlingStep; 3] = [HandlingStep::Load, HandlingStep::Send, HandlingStep::Record];

    /// Returns its number in the store; 0 stands for none.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the step with this number.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        HandlingStep::ALL.into_iter().find(|step| step.number() == number)
    }
}

impl fmt::Display for HandlingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandlingStep::Load => "reading its request",
            HandlingStep::Send => "sending it",
            HandlingStep::Record => "recording its outcome",
        })
    }
}

/// What a crashed process left behind about a delivery that it had claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashTrace {
    /// The delivery was not on probation, and this many were claimed.
    Unwatched(u32),
    /// The process was in the middle of this step.
    Begun(HandlingStep),
    /// The last marked step had ended.
    Ended,
}

/// The crashes that a delivery is suspected of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suspicion {
    /// The number of crashes in a row.
    pub crashes: u32,
    /// The step in which they happened, if it is known.
    pub step: Option<HandlingStep>,
}

impl Suspicion {
    /// Returns the suspicion after one more crash.
    #[must_use]
    pub fn after(self, trace: CrashTrace) -> Self {
        match trace {
            CrashTrace::Unwatched(claimed) if claimed <= FEW => Suspicion { crashes: 1, step: None },
            CrashTrace::Unwatched(_) | CrashTrace::Ended => Suspicion::default(),
            CrashTrace::Begun(step) if self.step.is_none_or(|before| before == step) => {
                Suspicion { crashes: self.crashes + 1, step: Some(step) }
            }
            CrashTrace::Begun(step) => Suspicion { crashes: 1, step: Some(step) },
        }
    }

    /// Whether the suspicion is proved, so that the delivery is quarantined.
    #[must_use]
    pub fn is_proof(self) -> bool {
        self.crashes >= CRASHES_MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A delivery in a model of the hub.
    #[derive(Clone, Copy, Default, Debug)]
    struct Row {
        culprit: bool,
        watched: bool,
        suspicion: Suspicion,
        ended: Option<bool>,
    }

    /// One life of a process: all that is not watched is worked at at once, the rest one after the other, from `first` on, or two at a
    /// time if nothing speaks against them. Every `slow`th waits for its peer until the end of the life. True, if it crashed.
    fn live(rows: &mut [Row], first: usize, slow: usize) -> bool {
        let open: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].ended.is_none()).collect();
        let in_hand = u32::try_from(open.len()).unwrap();
        let mut traces = vec![None; rows.len()];
        let mut crashed = open.iter().any(|at| !rows[*at].watched && rows[*at].culprit);
        let (watched, others): (Vec<usize>, Vec<usize>) = open.iter().partition(|at| rows[**at].watched);
        let order: Vec<usize> = watched.iter().cycle().skip(first).take(watched.len()).copied().collect();
        let accused = |at: &usize| rows[*at].suspicion.crashes > 0;
        for together in
            order.chunk_by(|one, other| !accused(one) && !accused(other)).flat_map(|few| few.chunks(2))
        {
            crashed = crashed || together.iter().any(|at| rows[*at].culprit);
            for at in together {
                traces[*at] =
                    Some(if crashed { CrashTrace::Begun(HandlingStep::Send) } else { CrashTrace::Ended });
            }
            if crashed {
                break;
            }
        }
        if crashed {
            others.iter().for_each(|at| traces[*at] = Some(CrashTrace::Unwatched(in_hand)));
        }
        for at in open {
            let row = &mut rows[at];
            let done = !crashed || (row.watched && traces[at] == Some(CrashTrace::Ended) && at % slow != 0);
            if done {
                row.ended = Some(true);
            } else if let Some(trace) = traces[at] {
                row.suspicion = row.suspicion.after(trace);
                row.watched = true;
                row.ended = row.suspicion.is_proof().then_some(false);
            }
        }
        crashed
    }

    proptest! {
        /// PRM-1. Trap "poison that kills the process": a delivery that ends the process is found within a few crashes, however many
        /// were claimed with it, and no other one is blamed.
        #[test]
        fn prm_1_a_culprit_is_convicted_soon_and_nobody_else_is(
            count in 1_usize..400, culprits in proptest::collection::btree_set(0_usize..400, 0..4), first in 0_usize..400,
            slow in 1_usize..5,
        ) {
            let mut rows = vec![Row::default(); count];
            culprits.iter().filter(|at| **at < count).for_each(|at| rows[*at].culprit = true);
            let guilty = rows.iter().filter(|row| row.culprit).count();
            let mut crashes = 0;
            while live(&mut rows, first, slow) {
                crashes += 1;
                prop_assert!(crashes <= 1 + 3 * guilty, "{crashes} crashes for {guilty}");
            }
            for row in rows {
                prop_assert_eq!(row.ended, Some(!row.culprit), "{:?}", row);
            }
        }
    }

    fn crashes(traces: &[CrashTrace]) -> u32 {
        traces.iter().fold(Suspicion::default(), |before, trace| before.after(*trace)).crashes
    }

    /// PRM-1: one that is nearly alone is guilty at the third crash, one among many by the fourth.
    #[test]
    fn prm_1_a_few_in_hand_are_suspected_sooner() {
        let sending = CrashTrace::Begun(HandlingStep::Send);
        assert_eq!(crashes(&[CrashTrace::Unwatched(FEW), sending, sending]), CRASHES_MAX);
        assert_eq!(crashes(&[CrashTrace::Unwatched(FEW + 1), sending, sending]), CRASHES_MAX - 1);
    }

    /// PRM-1. Trap "a kill from outside quarantines": a crash outside of a step acquits, and only crashes in one step add up.
    #[test]
    fn prm_1_a_crash_outside_of_a_step_acquits() {
        let (sending, recording) =
            (CrashTrace::Begun(HandlingStep::Send), CrashTrace::Begun(HandlingStep::Record));
        assert_eq!(crashes(&[CrashTrace::Unwatched(1), sending, CrashTrace::Ended]), 0);
        assert_eq!(crashes(&[sending, sending, CrashTrace::Ended, sending, sending]), 2);
        assert_eq!(crashes(&[CrashTrace::Unwatched(1), sending, recording]), 1);
    }

    /// PRM-1: a step is found again by its number, and 0 is none.
    #[test]
    fn prm_1_a_step_is_found_by_its_number() {
        for step in HandlingStep::ALL {
            assert_eq!(HandlingStep::of(step.number()), Some(step));
        }
        assert_eq!((HandlingStep::of(0), HandlingStep::of(4)), (None, None));
    }
}
