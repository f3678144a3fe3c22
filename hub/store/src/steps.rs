//! The file in which steps of suspects are marked.
//!
//! # Why a file of its own?
//! A mark has to outlive the process and not the machine, so it needs no wait for the disk: one small write to a file is enough,
//! and costs a microsecond, where a commit costs milliseconds. What was begun is known at the next start exactly.
//!
//! A suspect has a slot for as long as it is in memory. A slot holds the epoch, the number of the delivery, and the
//! step or 0. Slots of another epoch than the one that has ended say nothing.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::delivery::suspects::HandlingStep;
use seawall_hub_core::port::store::{Change, StepMarks, UnitOfWork};
use seawall_hub_core::sync::Lock;

const NAME: &str = "steps";
/// The size of a slot in bytes.
const SLOT: usize = 24;
/// The number of slots that the file has from the start, so that a full disk does not matter to most marks.
const SLOTS_MIN: usize = 256;
/// The maximum number of marked deliveries. Those beyond it are not marked, and so are never quarantined.
const SLOTS_MAX: usize = 16_384;

/// The mark that a process has left about a delivery on probation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) epoch: i64,
    pub(crate) number: i64,
    /// The step that was begun and not ended.
    pub(crate) step: Option<HandlingStep>,
}

/// Marks the steps of crash suspects in a file.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The epoch of this process.
    epoch: u64,
    /// True since the first mark of this start: a hub that has not crashed never looks any further.
    watches: AtomicBool,
    slots: Lock<Slots>,
}

#[derive(Debug)]
struct Slots {
    file: File,
    /// The slot of each delivery on probation.
    taken: HashMap<u64, usize>,
    free: Vec<usize>,
    /// The number of slots that were ever taken.
    used: usize,
}

/// Returns the marks that the process before has left. A file that can't be read has none.
pub(crate) fn left(folder: &Path) -> Vec<Mark> {
    let bytes = fs::read(folder.join(NAME)).unwrap_or_default();
    let mark = |slot: &[u8]| {
        let number = |at: usize| slot.get(at..at + 8)?.try_into().ok().map(i64::from_le_bytes);
        let (epoch, number, step) = (number(0)?, number(8)?, number(16)?);
        let step = HandlingStep::of(u8::try_from(step).ok()?);
        (epoch > 0).then_some(Mark { epoch, number, step })
    };
    bytes.chunks_exact(SLOT).filter_map(mark).collect()
}

impl Steps {
    /// Creates or empties the file.
    pub(crate) fn open(folder: &Path, epoch: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(folder.join(NAME))?;
        // Written over and then cut, and not the other way round: what is there has its room on the disk.
        file.write_all(&[0; SLOTS_MIN * SLOT])?;
        file.set_len((SLOTS_MIN * SLOT) as u64)?;
        let slots = Slots { file, taken: HashMap::new(), free: Vec::new(), used: 0 };
        Ok(Steps { epoch, watches: AtomicBool::new(false), slots: Lock::new(slots) })
    }

    /// Whether a delivery of this process was ever marked, which only a crash suspect is.
    pub(crate) fn has_suspects(&self) -> bool {
        self.watches.load(Ordering::Relaxed)
    }

    /// Marks that the outcome of a suspect is being recorded, until the guard is dropped.
    pub(crate) fn recording(&self, unit: &UnitOfWork) -> Option<Recording<'_>> {
        let settled = |change: &Change| match change {
            Change::Settle(settlement) => Some(settlement.claim.delivery),
            _ => None,
        };
        let delivery = unit.changes.iter().find_map(settled)?;
        let watched = self.lock().taken.contains_key(&delivery.number);
        watched.then(|| {
            self.began(delivery, HandlingStep::Record);
            Recording { steps: self, delivery }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock()
    }
}

impl StepMarks for Steps {
    fn began(&self, delivery: DeliveryId, step: HandlingStep) {
        self.watches.store(true, Ordering::Relaxed);
        let mut slots = self.lock();
        if let Some(slot) = slots.slot(delivery.number) {
            slots.write(slot, self.epoch, delivery.number, step.number());
        }
    }

    fn ended(&self, delivery: DeliveryId) {
        let mut slots = self.lock();
        if let Some(slot) = slots.taken.get(&delivery.number).copied() {
            slots.write(slot, self.epoch, delivery.number, 0);
        }
    }

    fn forget(&self, delivery: DeliveryId) {
        let mut slots = self.lock();
        if let Some(slot) = slots.taken.remove(&delivery.number) {
            slots.write(slot, 0, 0, 0);
            slots.free.push(slot);
        }
    }
}

impl Slots {
    /// Returns the slot of a delivery; a new one, if it has none.
    fn slot(&mut self, number: u64) -> Option<usize> {
        if let Some(slot) = self.taken.get(&number) {
            return Some(*slot);
        }
        let slot = self.free.pop().or_else(|| {
            let fresh = (self.used < SLOTS_MAX).then_some(self.used);
            self.used += usize::from(fresh.is_some());
            fresh
        })?;
        self.taken.insert(number, slot);
        Some(slot)
    }

    fn write(&mut self, slot: usize, epoch: u64, number: u64, step: u8) {
        let mut bytes = [0; SLOT];
        bytes[..8].copy_from_slice(&epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes[16] = step;
        // A mark that can't be written blames nobody, which is the right side to fail on.
        let _ =
            self.file.seek(SeekFrom::Start((slot * SLOT) as u64)).and_then(|_| self.file.write_all(&bytes));
    }
}

/// A guard while the outcome of a suspect is being recorded.
#[derive(Debug)]
pub(crate) struct Recording<'s> {
    steps: &'s Steps,
    delivery: DeliveryId,
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.steps.ended(self.delivery);
    }
}

#[cfg(test)]
mod tests {
    use seawall_hub_core::domain::delivery::{Decision, Disposition, Progress};
    use seawall_hub_core::domain::time::Millis;
    use seawall_hub_core::port::store::{Claim, Settlement};
    use tempfile::TempDir;

    use super::*;

    fn id(number: u64) -> DeliveryId {
        DeliveryId::new(7, number)
    }

    fn steps(folder: &TempDir) -> Steps {
        Steps::open(folder.path(), 3).unwrap()
    }

    /// PRM-1: what was begun is there for the next start, and so is that it has ended; what is out of hand is not.
    #[test]
    fn prm_1_marks_outlive_the_process() {
        let folder = TempDir::new().unwrap();
        assert_eq!(left(folder.path()), []);
        let marks = steps(&folder);
        assert_eq!(left(folder.path()), []);
        for number in 1..=3 {
            marks.began(id(number), HandlingStep::Send);
        }
        marks.ended(id(2));
        marks.forget(id(3));
        let mark = |number, step| Mark { epoch: 3, number, step };
        assert_eq!(left(folder.path()), [mark(1, Some(HandlingStep::Send)), mark(2, None)]);
        // The place of the third is used again.
        marks.began(id(4), HandlingStep::Load);
        assert_eq!(left(folder.path())[2], mark(4, Some(HandlingStep::Load)));
        drop(marks);
        drop(steps(&folder));
        assert_eq!(left(folder.path()), [], "a new start begins anew");
    }

    /// PRM-1: more suspects than there are slots are not marked, and nothing else comes of it.
    #[test]
    fn prm_1_the_number_of_marks_is_bounded() {
        let folder = TempDir::new().unwrap();
        let marks = steps(&folder);
        for number in 0..=SLOTS_MAX as u64 {
            marks.began(id(number), HandlingStep::Send);
        }
        assert_eq!(left(folder.path()).len(), SLOTS_MAX);
    }

    /// PRM-1: the outcome of a suspect is marked while it is recorded, that of any other is not.
    #[test]
    fn prm_1_recording_the_outcome_of_a_suspect_is_a_step() {
        let folder = TempDir::new().unwrap();
        let marks = steps(&folder);
        let settle = |number| {
            UnitOfWork::of(Change::Settle(Settlement {
                claim: Claim { delivery: id(number), epoch: 3 },
                decision: Decision {
                    disposition: Disposition::Delivered,
                    progress: Progress { accepted: Millis(0), counted: 0, failures: 0, panics: 0 },
                    attempted: true,
                    throttle: None,
                },
                attempt: None,
                failure: None,
                at: Millis(0),
                ordered: false,
                is_replay: false,
            }))
        };
        assert!(marks.recording(&settle(1)).is_none());
        marks.began(id(1), HandlingStep::Send);
        marks.ended(id(1));
        assert!(marks.recording(&settle(2)).is_none());
        let recording = marks.recording(&settle(1));
        assert_eq!(left(folder.path())[0].step, Some(HandlingStep::Record));
        drop(recording);
        assert_eq!(left(folder.path())[0].step, None);
    }

    /// PRM-1: a file that is cut off or full of anything else says nothing.
    #[test]
    fn prm_1_a_damaged_file_of_marks_says_nothing() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(NAME), [0xFF; 3 * SLOT + 5]).unwrap();
        assert_eq!(left(folder.path()), []);
    }
}
