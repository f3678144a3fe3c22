//! Which offsets of a partition may be committed.

use std::collections::VecDeque;

/// The records of a partition between the last commit and the last delivery.
///
/// An offset may be committed when its record and all before it are done, in whatever order they were. Offsets have gaps, so
/// "all before it" are those that were delivered.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    /// Records that are not done, and those behind them: the offset, and whether it is done.
    open: VecDeque<(i64, bool)>,
    /// Records that are done, and whose commit is not acknowledged.
    uncommitted: VecDeque<i64>,
    /// The offset that may be committed: one after the last that is done.
    next: Option<i64>,
    /// The offset that the cluster has acknowledged.
    committed: Option<i64>,
}

impl Offsets {
    /// Begins a record. Records of a partition begin in the order of their offsets.
    pub(crate) fn begin(&mut self, offset: i64) {
        if self.next.is_none() {
            self.next = Some(offset);
        }
        self.open.push_back((offset, false));
    }

    /// Marks a record as done.
    pub(crate) fn finish(&mut self, offset: i64) {
        if let Some(index) = self.index_of(offset) {
            self.open[index].1 = true;
        }
        while let Some((offset, _)) = self.open.pop_front_if(|(_, done)| *done) {
            self.uncommitted.push_back(offset);
            self.next = Some(offset + 1);
        }
    }

    fn index_of(&self, offset: i64) -> Option<usize> {
        // Without gaps it is found at once.
        let distance = usize::try_from(offset - self.open.front()?.0).ok()?;
        match self.open.get(distance) {
            Some((known, _)) if *known == offset => Some(distance),
            _ => self.open.binary_search_by_key(&offset, |(known, _)| *known).ok(),
        }
    }

    /// The cluster has acknowledged that everything before this offset is done.
    pub(crate) fn committed(&mut self, offset: i64) {
        self.committed = self.committed.max(Some(offset));
        while self.uncommitted.pop_front_if(|known| *known < offset).is_some() {}
    }

    /// The offset to commit; `None` if the cluster knows it.
    pub(crate) fn to_commit(&self) -> Option<i64> {
        self.next.filter(|next| self.committed.is_none_or(|committed| *next > committed))
    }

    /// The offset up to which everything is done; `None` before the first record.
    pub(crate) fn next(&self) -> Option<i64> {
        self.next
    }

    /// The number of records that a crash would deliver again.
    pub(crate) fn at_risk(&self) -> usize {
        self.open.len() + self.uncommitted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-5: what is committed never passes a record that is not done, in whatever order records are done.
    #[test]
    fn adp_5_only_what_is_done_without_a_gap_is_committed() {
        let mut offsets = Offsets::default();
        for offset in [10, 11, 15, 16] {
            offsets.begin(offset);
        }
        assert_eq!(offsets.to_commit(), Some(10));
        offsets.finish(15);
        offsets.finish(11);
        assert_eq!((offsets.to_commit(), offsets.at_risk()), (Some(10), 4));
        offsets.finish(10);
        assert_eq!(offsets.to_commit(), Some(16));
        offsets.committed(12);
        assert_eq!((offsets.to_commit(), offsets.at_risk()), (Some(16), 2));
        offsets.committed(16);
        assert_eq!((offsets.to_commit(), offsets.at_risk()), (None, 1));
        offsets.finish(16);
        offsets.committed(16);
        assert_eq!((offsets.to_commit(), offsets.next()), (Some(17), Some(17)));
    }
}
