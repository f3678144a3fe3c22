//! What one rendering may cost: steps of work and bytes of memory, both counted before they are spent.
//!
//! # Why not a clock?
//! A rendering that ends by a clock fails on a busy machine and passes on an idle one, so the same event would be delivered
//! today and be a dead letter tomorrow. Steps are the same everywhere. One step is at most about 20 ns of CPU, so
//! [`WORK_MAX`] steps end within 50 ms.

use std::cell::Cell;

/// The number of steps that one rule may spend on one event, in all its expressions together.
///
/// A step is one operation, one item that is looked at, or eight bytes of text that are read. 40 000 numbers can be sorted
/// with it, and every filter can go over the largest event a few times.
pub const WORK_MAX: u64 = 750_000;
/// The number of bytes that one rule may hold at a time while it is applied to one event, beside the event itself.
///
/// The largest event takes up to 19 MiB when it is taken apart, so both together stay below 32 MiB.
pub const MEMORY_BYTES_MAX: usize = 12 * 1024 * 1024;

/// The budget of one rendering: one rule applied to one event.
#[derive(Debug)]
pub struct Meter {
    work_max: u64,
    work_left: Cell<u64>,
    /// What is held until the end of the rendering: its output.
    kept: Cell<usize>,
    /// What is held until the end of the expression that is evaluated.
    passing: Cell<usize>,
    peak: Cell<usize>,
}

/// Which of the two budgets ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::render) enum BudgetKind {
    Work,
    Memory,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::with_work(WORK_MAX)
    }
}

impl Meter {
    /// A budget with less work in it, for a place that can't wait.
    #[must_use]
    pub fn with_work(work_max: u64) -> Self {
        Meter {
            work_max,
            work_left: Cell::new(work_max),
            kept: Cell::new(0),
            passing: Cell::new(0),
            peak: Cell::new(0),
        }
    }

    /// The number of steps that may be spent.
    #[must_use]
    pub fn work_max(&self) -> u64 {
        self.work_max
    }

    /// The number of steps that were spent.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work_max - self.work_left.get()
    }

    /// The largest number of bytes that were held at a time.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.peak.get()
    }

    /// True when the rendering ended because its work was spent.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.work_left.get() == 0
    }

    /// Spends steps. After a failure nothing is left, so nothing else can be done with the rest.
    pub(in crate::render) fn spend(&self, steps: usize) -> Result<(), BudgetKind> {
        match self.work_left.get().checked_sub(steps as u64) {
            Some(left) => {
                self.work_left.set(left);
                Ok(())
            }
            None => {
                self.work_left.set(0);
                Err(BudgetKind::Work)
            }
        }
    }

    /// Spends steps for a text that is read character by character.
    pub(in crate::render) fn read(&self, bytes: usize) -> Result<(), BudgetKind> {
        self.spend(1 + bytes / 8)
    }

    /// Spends steps for bytes that are copied.
    pub(in crate::render) fn copy(&self, bytes: usize) -> Result<(), BudgetKind> {
        self.spend(1 + bytes / 64)
    }

    /// Takes memory until the end of the expression.
    pub(in crate::render) fn hold(&self, bytes: usize) -> Result<(), BudgetKind> {
        self.passing.set(self.passing.get().saturating_add(bytes));
        self.check()
    }

    /// Takes memory until the end of the rendering.
    pub(in crate::render) fn keep(&self, bytes: usize) -> Result<(), BudgetKind> {
        self.kept.set(self.kept.get().saturating_add(bytes));
        self.check()
    }

    /// Gives memory back that was held.
    pub(in crate::render) fn release(&self, bytes: usize) {
        self.passing.set(self.passing.get().saturating_sub(bytes));
    }

    /// Gives memory back that was kept.
    pub(in crate::render) fn discard(&self, bytes: usize) {
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// An expression has ended, and what it held is gone.
    pub(in crate::render) fn end_expression(&self) {
        self.passing.set(0);
    }

    fn check(&self) -> Result<(), BudgetKind> {
        let held = self.kept.get().saturating_add(self.passing.get());
        if held > MEMORY_BYTES_MAX {
            return Err(BudgetKind::Memory);
        }
        if held > self.peak.get() {
            self.peak.set(held);
        }
        Ok(())
    }
}
