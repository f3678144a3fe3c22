//! Poison: a delivery whose handling panics or ends the process, again and again.
//!
//! # Panics
//! A panic is known to be the delivery's own. It is a failed try, and after [`PANICS_MAX`] of them the delivery is given up,
//! whatever its schedule says.
//!
//! # Crashes
//! A process that ends says nothing of which delivery it was: of all that it had in hand, each may be the one. So each counts one
//! crash, and one that was in hand at [`SUSPECT_AT`] crashes is a *suspect*. That proves little: somebody may have killed the
//! process twice, and thousands were in hand. Suspects are *tried*: sent as always, but only so many of the whole hub at once,
//! and each is marked before its try begins. A try that ends in whatever way clears its delivery. If the process ends while
//! tries are under way, it was mostly one of them. One alone is convicted. Several are tried again in a smaller company, an
//! [eighth](SPLIT) of how many they were, so that one among [64](TOGETHER_MAX) is alone at the third try.
//!
//! # Why not one at a time from the start?
//! One that waits 30 s for its peer would hold up all suspects behind it, and there may be thousands. With a company that only
//! a crash makes smaller, those who did nothing are through as fast as their peers answer, and a culprit costs two crashes
//! more at the most.

/// After so many panics a delivery is given up.
pub const PANICS_MAX: u32 = 3;
/// What was in hand at so many crashes is a suspect.
pub const SUSPECT_AT: u32 = 2;
/// So many suspects are tried at once at most.
pub const TOGETHER_MAX: u32 = 64;
/// After a crash they are tried again in a company that is so many times smaller.
const SPLIT: u32 = 8;

/// What becomes of those whose tries were under way when the process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They are tried again, so many at once at most.
    Again(u32),
    /// It was alone.
    Convicted,
}

/// The verdict on those that were on trial when the process ended, so many in all.
#[must_use]
pub fn after_crash(on_trial: u32) -> Verdict {
    if on_trial <= 1 { Verdict::Convicted } else { Verdict::Again((on_trial / SPLIT).clamp(1, TOGETHER_MAX)) }
}

/// How many more may be tried, while these are on trial, each of which may be in a company of so many; `next` is the company of
/// the one whose turn it is.
#[must_use]
pub fn seats(on_trial: impl IntoIterator<Item = u32>, next: u32) -> u32 {
    let (mut seated, mut most) = (0, next.min(TOGETHER_MAX));
    for together in on_trial {
        (seated, most) = (seated + 1, most.min(together));
    }
    most.saturating_sub(seated)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A delivery in a model of the hub.
    #[derive(Clone, Copy, Default, Debug)]
    struct Row {
        culprit: bool,
        crashes: u32,
        /// As a suspect, how many it may be tried with.
        together: u32,
        ended: Option<bool>,
    }

    /// One life of a process: all that is no suspect is in hand, suspects are tried as the rules say. True, if it crashed.
    fn live(rows: &mut [Row], slowness: usize) -> bool {
        let (mut on_trial, mut crashed): (Vec<usize>, bool) = (Vec::new(), false);
        loop {
            let waiting = |row: &Row| row.ended.is_none() && row.together > 0;
            let mut next: Vec<usize> =
                (0..rows.len()).filter(|at| waiting(&rows[*at]) && !on_trial.contains(at)).collect();
            next.sort_by_key(|at| rows[*at].together);
            let free = next.first().map_or(0, |first| {
                seats(on_trial.iter().map(|at| rows[*at].together), rows[*first].together)
            });
            on_trial.extend(next.into_iter().take(free as usize));
            // Whoever is not tried under supervision goes at once, and may end the process too.
            let normal = |row: &Row| row.ended.is_none() && row.together == 0;
            crashed |= rows.iter().any(|row| normal(row) && row.culprit);
            crashed |= on_trial.iter().any(|at| rows[*at].culprit);
            if crashed {
                let verdict = after_crash(u32::try_from(on_trial.len()).unwrap());
                for at in &on_trial {
                    rows[*at].crashes += 1;
                    match verdict {
                        Verdict::Convicted => rows[*at].ended = Some(false),
                        Verdict::Again(together) => rows[*at].together = together,
                    }
                }
                for row in rows.iter_mut().filter(|row| normal(row)) {
                    row.crashes += 1;
                    if row.crashes >= SUSPECT_AT {
                        row.together = TOGETHER_MAX;
                    }
                }
                return true;
            }
            rows.iter_mut().filter(|row| normal(row)).for_each(|row| row.ended = Some(true));
            if on_trial.is_empty() {
                return false;
            }
            // Some end sooner than others.
            for at in on_trial.drain(..on_trial.len().div_ceil(slowness)) {
                rows[at].ended = Some(true);
            }
        }
    }

    proptest! {
        /// PRM-1. Trap "poison that kills the process": whoever ends the process is found within a few crashes, however many were
        /// in hand with it, and nobody else is blamed.
        #[test]
        fn prm_1_a_culprit_is_convicted_soon_and_nobody_else_is(
            count in 1_usize..400, culprits in proptest::collection::btree_set(0_usize..400, 0..4), slowness in 1_usize..5,
        ) {
            let mut rows = vec![Row::default(); count];
            culprits.iter().filter(|at| **at < count).for_each(|at| rows[*at].culprit = true);
            let guilty = rows.iter().filter(|row| row.culprit).count();
            let mut crashes = 0;
            while live(&mut rows, slowness) {
                crashes += 1;
                prop_assert!(crashes <= 2 + 4 * guilty, "{crashes} crashes for {guilty}");
            }
            for row in rows {
                prop_assert_eq!(row.ended, Some(!row.culprit), "{:?}", row);
            }
        }

        /// PRM-1: a company is never larger than the smallest that one of it may be in.
        #[test]
        fn prm_1_nobody_is_tried_in_too_large_a_company(
            on_trial in proptest::collection::vec(1_u32..100, 0..70), next in 1_u32..100,
        ) {
            let seated = u32::try_from(on_trial.len()).unwrap();
            let free = seats(on_trial.iter().copied(), next);
            let least = on_trial.iter().copied().chain([next, TOGETHER_MAX]).min().unwrap();
            prop_assert!(free == 0 || seated + free == least);
        }
    }

    /// PRM-1: one alone is convicted, and one among many is alone soon.
    #[test]
    fn prm_1_a_company_shrinks_until_one_is_alone() {
        let mut seen = Vec::new();
        let mut on_trial = TOGETHER_MAX;
        while let Verdict::Again(together) = after_crash(on_trial) {
            seen.push(together);
            on_trial = together;
        }
        assert_eq!(seen, [8, 1]);
        assert_eq!(after_crash(2), Verdict::Again(1));
        assert_eq!(after_crash(1_000_000), Verdict::Again(TOGETHER_MAX));
    }
}
