//! Measures every row in one process.
//!
//! Round 1 of every row, then round 2 of every row, and so on, so that the noise of the machine hits all alike. A row's
//! cost is the least of its rounds: noise only ever adds.

use std::time::Duration;

use crate::body::Body;
use crate::op::{Kind, MEASURED};
use crate::pair::{Pair, Together};
use crate::row::{Group, Row};

/// How long one round of one row runs.
pub const ROUND: Duration = Duration::from_millis(20);
/// A round of two threads counts only if both had a core for this share of it.
pub const CORE_SHARE_MIN: f64 = 0.95;
/// How often two threads look at the clock in one round.
const CHUNKS_PER_ROUND: u64 = 40;
/// How many calls are made to count their allocations.
const COUNTED_CALLS: u64 = 1000;

/// The numbers of one row.
pub struct Measured {
    pub group: Group,
    pub name: String,
    pub ready: Option<Numbers>,
    pub suspending: Option<Numbers>,
}

/// The numbers of one row for one kind of operation.
pub struct Numbers {
    /// Nanoseconds per call, of each round.
    pub rounds: Vec<f64>,
    pub allocations: f64,
    /// Two threads, of each round; empty where two threads are not measured.
    pub together: Vec<Together>,
}

impl Measured {
    pub fn numbers(&self, kind: Kind) -> Option<&Numbers> {
        match kind {
            Kind::Ready => self.ready.as_ref(),
            Kind::Suspending => self.suspending.as_ref(),
            Kind::Failing => None,
        }
    }
}

impl Numbers {
    /// Nanoseconds per call, the operation included.
    pub fn ns(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Million calls a second on one thread.
    pub fn mops(&self) -> f64 {
        1e3 / self.ns()
    }

    /// Million calls a second of two threads together, and whether both had a core: the median of the rounds in which
    /// they had, or, where there is none, of all. Not the best: two threads that wait for each other are now and then
    /// lucky, and fall into step.
    pub fn mops_together(&self) -> Option<(f64, bool)> {
        let counted = self.on_cores().map(|(_, together)| together.mops).collect();
        let all = self.together.iter().map(|round| round.mops).collect();
        median(counted).map(|mops| (mops, true)).or_else(|| median(all).map(|mops| (mops, false)))
    }

    /// Two threads against one, each round compared with itself: the median of the same rounds.
    pub fn scaling(&self) -> Option<f64> {
        let ratio = |(ns, together): (&f64, &Together)| together.mops / (1e3 / ns);
        let counted = self.on_cores().map(ratio).collect();
        let all = self.rounds.iter().zip(&self.together).map(ratio).collect();
        median(counted).or_else(|| median(all))
    }

    fn on_cores(&self) -> impl Iterator<Item = (&f64, &Together)> {
        self.rounds.iter().zip(&self.together).filter(|(_, together)| together.core_share >= CORE_SHARE_MIN)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Checks that every row does what it says, then measures all of them. `progress` is told what is going on.
pub fn measure(rows: &[Row], rounds: u32, progress: impl Fn(&str)) -> Result<Vec<Measured>, String> {
    let pair = Pair::start();
    progress(&format!("warming up {} rows", rows.len()));
    let mut cells = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for &kind in row.kinds {
            let answered = row.body.succeeds(kind);
            if answered != row.succeeds {
                let expected = if row.succeeds { "succeed" } else { "be refused" };
                return Err(format!("row `{}`: its calls ought to {expected} and do not", row.name));
            }
            let calls = calibrate(row.body.as_ref(), kind);
            let allocations = allocations(row.body.as_ref(), kind);
            let numbers = Numbers { rounds: Vec::new(), allocations, together: Vec::new() };
            cells.push((index, kind, calls, numbers));
        }
    }
    for round in 1..=rounds {
        progress(&format!("round {round} of {rounds}"));
        for (index, kind, calls, numbers) in &mut cells {
            let row = &rows[*index];
            numbers
                .rounds
                .push(uncounted(|| row.body.run(*kind, *calls)).as_secs_f64() * 1e9 / *calls as f64);
            if row.shared {
                let chunk = (*calls / CHUNKS_PER_ROUND).max(1);
                numbers.together.push(uncounted(|| pair.run(&row.body, *kind, chunk, ROUND)));
            }
        }
    }
    Ok(collect(rows, cells))
}

fn collect(rows: &[Row], cells: Vec<(usize, Kind, u64, Numbers)>) -> Vec<Measured> {
    let empty =
        |row: &Row| Measured { group: row.group, name: row.name.clone(), ready: None, suspending: None };
    let mut measured: Vec<Measured> = rows.iter().map(empty).collect();
    for (index, kind, _, numbers) in cells {
        let place =
            if kind == MEASURED[0] { &mut measured[index].ready } else { &mut measured[index].suspending };
        *place = Some(numbers);
    }
    measured
}

/// Doubles the number of calls until they take a quarter of a round, and reckons how many fill one.
fn calibrate(body: &dyn Body, kind: Kind) -> u64 {
    let mut calls = 1;
    loop {
        let elapsed = uncounted(|| body.run(kind, calls));
        if elapsed >= ROUND / 4 {
            return ((calls as f64 * ROUND.as_secs_f64() / elapsed.as_secs_f64()) as u64).max(1);
        }
        calls *= 2;
    }
}

/// Allocations per call: the difference of two runs, so that what a run allocates by itself drops out.
fn allocations(body: &dyn Body, kind: Kind) -> f64 {
    let run = |calls| {
        body.run(kind, calls);
    };
    let count = |calls| allocation_counter::measure(|| run(calls)).count_total as f64;
    (count(2 * COUNTED_CALLS) - count(COUNTED_CALLS)) / COUNTED_CALLS as f64
}

/// Runs with the counting allocator at rest: one look at a thread-local flag per allocation is left.
fn uncounted<T>(run: impl FnOnce() -> T) -> T {
    let mut answer = None;
    allocation_counter::opt_out(|| answer = Some(run()));
    answer.expect("opt_out runs what it is given")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(together: &[(f64, f64)]) -> Numbers {
        let together = together.iter().map(|&(mops, core_share)| Together { mops, core_share }).collect();
        Numbers { rounds: vec![100.0, 50.0, 200.0], allocations: 0.0, together }
    }

    #[test]
    fn one_thread_is_judged_by_its_best_round() {
        assert_eq!((numbers(&[]).ns(), numbers(&[]).mops()), (50.0, 20.0));
        assert_eq!((numbers(&[]).mops_together(), numbers(&[]).scaling()), (None, None));
    }

    #[test]
    fn two_threads_are_judged_only_by_rounds_in_which_both_had_a_core() {
        let numbers = numbers(&[(15.0, 1.0), (90.0, 0.5), (15.0, 0.99)]);
        assert_eq!(numbers.mops_together(), Some((15.0, true)));
        assert_eq!(numbers.scaling(), Some(3.0));
    }

    #[test]
    fn two_threads_that_never_both_had_a_core_are_judged_by_all_rounds_and_marked() {
        let numbers = numbers(&[(10.0, 0.1), (40.0, 0.5), (20.0, 0.2)]);
        assert_eq!(numbers.mops_together(), Some((20.0, false)));
    }
}
