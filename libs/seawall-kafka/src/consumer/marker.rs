//! What a consumer leaves beside its committed offsets, so that a record that kills the process is found.
//!
//! # Why a marker?
//! Kafka does not count deliveries. A record that kills its consumer is delivered to the next one as if for the first time, and
//! kills that too, for ever. But a committed offset may carry a text, and the group keeps it where every next owner of the
//! partition sees it. So a consumer writes "I have begun here" with the first record of a partition, and takes it back when it
//! leaves in an orderly way. An owner that finds the mark of another knows that the other died.
//!
//! One death says nothing: machines are restarted. After [`DEATHS_BEFORE_CARE`] deaths at the same place the records there are
//! run one at a time, each with a mark of its own, so that the next death names its record. That record is attempted no more
//! often than others are, and then given up.

/// The number of deaths at the same place after which records run alone.
pub(crate) const DEATHS_BEFORE_CARE: u32 = 2;

/// The mark beside a committed offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marker {
    /// How many consumers began between `from` and here, this one included.
    starts: u32,
    /// The offset where they began.
    from: i64,
    /// How often the record at the committed offset was run alone.
    alone: u32,
}

impl Marker {
    /// What a consumer writes when it begins at this offset, by what it found there.
    pub(crate) fn begin(found: &str, offset: i64, window: i64) -> Marker {
        match Marker::parse(found) {
            // The other one died, but after it had come far: only its last records are in doubt.
            Some(old) if offset >= old.from.saturating_add(window) => {
                Marker { starts: 2, from: offset, alone: 0 }
            }
            Some(old) => Marker { starts: old.starts.saturating_add(1), ..old },
            None => Marker { starts: 1, from: offset, alone: 0 },
        }
    }

    /// The mark after everything before this offset is done.
    pub(crate) fn advance(self, offset: i64, window: i64) -> Marker {
        if offset >= self.from.saturating_add(window) {
            return Marker { starts: 1, from: offset, alone: 0 };
        }
        Marker { alone: 0, ..self }
    }

    /// The mark of a record that is about to run alone.
    pub(crate) fn run_alone(self) -> Marker {
        Marker { alone: self.alone.saturating_add(1), ..self }
    }

    /// The mark after the record that killed the others was given up.
    pub(crate) fn solved(self, offset: i64) -> Marker {
        Marker { starts: 1, from: offset, alone: 0 }
    }

    /// True if the records here have to run one at a time.
    pub(crate) fn needs_care(self) -> bool {
        self.starts > DEATHS_BEFORE_CARE
    }

    /// The number of consumers that died with the record at the committed offset; zero if that may be another's fault.
    pub(crate) fn deaths(self) -> u32 {
        if self.alone == 0 { 0 } else { DEATHS_BEFORE_CARE.saturating_add(self.alone) }
    }

    /// The text beside the offset.
    pub(crate) fn text(self) -> String {
        format!("seawall starts={} from={} alone={}", self.starts, self.from, self.alone)
    }

    fn parse(text: &str) -> Option<Marker> {
        let mut parts = text.strip_prefix("seawall ")?.split(' ');
        let mut value = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=')?.parse::<i64>().ok();
        let (starts, from, alone) = (value("starts")?, value("from")?, value("alone")?);
        Some(Marker { starts: u32::try_from(starts).ok()?, from, alone: u32::try_from(alone).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-5: a record that kills its process is run alone after two deaths, and is known by the third.
    #[test]
    fn adp_5_the_record_that_kills_is_found_after_three_deaths() {
        let first = Marker::begin("", 100, 50);
        let second = Marker::begin(&first.text(), 100, 50);
        assert!(!first.needs_care() && !second.needs_care());
        let third = Marker::begin(&second.text(), 110, 50);
        assert!(third.needs_care());
        assert_eq!(third.deaths(), 0, "the record at 110 may be innocent");
        let innocent = third.run_alone();
        let culprit = innocent.advance(111, 50).run_alone();
        let fourth = Marker::begin(&culprit.text(), 111, 50);
        assert_eq!((fourth.needs_care(), fourth.deaths()), (true, 3));
        assert!(!fourth.solved(112).needs_care());
    }

    /// ADP-5: consumers that die here and there, while the work goes on, make nobody suspicious.
    #[test]
    fn adp_5_deaths_far_apart_are_no_suspicion() {
        let first = Marker::begin("", 100, 50).advance(149, 50);
        let second = Marker::begin(&first.text(), 149, 50).advance(200, 50);
        let third = Marker::begin(&second.text(), 200, 50);
        assert!(!third.needs_care(), "{third:?}");
        assert_eq!(Marker::begin("somebody else's text", 7, 50), Marker { starts: 1, from: 7, alone: 0 });
    }
}
