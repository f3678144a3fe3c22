//! Poison: a delivery whose handling panics or ends the process, again and again.
//!
//! # Panics
//! A panic is known to be the delivery's own. It is a failed try, and after [`PANICS_MAX`] of them the delivery is given up,
//! whatever its schedule says.
//!
//! # Crashes
//! A process that ends says nothing of which delivery it was, or whether it was one at all: somebody may have killed it. So
//! what was in hand at a crash is *watched* by the next process. A watched delivery is marked while the process works at it, in
//! a [`Step`], and is not marked while it waits for its peer or in a queue. The mark outlives the process, so after the next crash
//! the marks name the few that it may have been, one for each thread at most. One that was named is worked at while no other watched
//! one is, so that nobody is named again because of it. [`CRASHES_MAX`] crashes in the same step convict. A step that has ended
//! before the crash acquits, and so does any outcome.
//!
//! # Why three?
//! A kill from outside falls into a step now and then: a step takes a fraction of a millisecond of a life. Three times in a row
//! for the same delivery, with no step of it that ended in between, is not chance.
//!
//! # Why is the first crash worth something?
//! Nothing is marked before the first crash, so that a healthy hub pays nothing for this. If [few](FEW) were in hand, it is likely
//! that it was one of them. So a delivery that ends the process is found after three crashes if it is nearly alone, and after
//! four among thousands.

use std::fmt;

/// A delivery is given up after this many panics.
pub const PANICS_MAX: u32 = 3;
/// A delivery is given up after this many crashes in the same step.
pub const CRASHES_MAX: u32 = 3;
/// With at most this many in hand, a crash that nobody watched counts against each of them.
pub const FEW: u32 = 8;

/// Something that the process does with a delivery by itself, without waiting for anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The stored request is read.
    Load,
    /// The request is made and written, or an answer is read.
    Send,
    /// The outcome is written to the store.
    Record,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 3] = [Step::Load, Step::Send, Step::Record];

    /// Its number in the store; 0 stands for none.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The step of this number.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Step::ALL.into_iter().find(|step| step.number() == number)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Load => "reading its request",
            Step::Send => "sending it",
            Step::Record => "recording its outcome",
        })
    }
}

/// What a crash has left of a delivery that was in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// It was not watched, and with it this many were in hand.
    Unwatched(u32),
    /// The process was in the middle of this step.
    Begun(Step),
    /// The last step that was begun had ended.
    Ended,
}

/// What speaks against a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suspicion {
    /// The number of crashes in a row that speak against it.
    pub crashes: u32,
    /// The step in which they happened, if it is known.
    pub step: Option<Step>,
}

impl Suspicion {
    /// What speaks against it after one more crash.
    #[must_use]
    pub fn after(self, trace: Trace) -> Self {
        match trace {
            Trace::Unwatched(in_hand) if in_hand <= FEW => Suspicion { crashes: 1, step: None },
            Trace::Unwatched(_) | Trace::Ended => Suspicion::default(),
            Trace::Begun(step) if self.step.is_none_or(|before| before == step) => {
                Suspicion { crashes: self.crashes + 1, step: Some(step) }
            }
            Trace::Begun(step) => Suspicion { crashes: 1, step: Some(step) },
        }
    }

    /// Whether it is given up.
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
                traces[*at] = Some(if crashed { Trace::Begun(Step::Send) } else { Trace::Ended });
            }
            if crashed {
                break;
            }
        }
        if crashed {
            others.iter().for_each(|at| traces[*at] = Some(Trace::Unwatched(in_hand)));
        }
        for at in open {
            let row = &mut rows[at];
            let done = !crashed || (row.watched && traces[at] == Some(Trace::Ended) && at % slow != 0);
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
        /// PRM-1. Trap "poison that kills the process": whoever ends the process is found within a few crashes, however many were
        /// in hand with it, and nobody else is blamed.
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

    fn crashes(traces: &[Trace]) -> u32 {
        traces.iter().fold(Suspicion::default(), |before, trace| before.after(*trace)).crashes
    }

    /// PRM-1: one that is nearly alone is convicted by the third crash, one among many by the fourth.
    #[test]
    fn prm_1_a_few_in_hand_are_suspected_sooner() {
        let sending = Trace::Begun(Step::Send);
        assert_eq!(crashes(&[Trace::Unwatched(FEW), sending, sending]), CRASHES_MAX);
        assert_eq!(crashes(&[Trace::Unwatched(FEW + 1), sending, sending]), CRASHES_MAX - 1);
    }

    /// PRM-1. Trap "a kill from outside quarantines": a crash outside of a step acquits, and only crashes in one step add up.
    #[test]
    fn prm_1_a_crash_outside_of_a_step_acquits() {
        let (sending, recording) = (Trace::Begun(Step::Send), Trace::Begun(Step::Record));
        assert_eq!(crashes(&[Trace::Unwatched(1), sending, Trace::Ended]), 0);
        assert_eq!(crashes(&[sending, sending, Trace::Ended, sending, sending]), 2);
        assert_eq!(crashes(&[Trace::Unwatched(1), sending, recording]), 1);
    }

    /// PRM-1: a step is found again by its number, and 0 is none.
    #[test]
    fn prm_1_a_step_is_found_by_its_number() {
        for step in Step::ALL {
            assert_eq!(Step::of(step.number()), Some(step));
        }
        assert_eq!((Step::of(0), Step::of(4)), (None, None));
    }
}
