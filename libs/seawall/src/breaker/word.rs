//! A circuit in 64 bits.

use std::fmt;

/// Where a circuit stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Place {
    Closed = 0,
    /// Closed again not long ago: a growing share of the calls passes.
    Ramping = 1,
    Open = 2,
    HalfOpen = 3,
    ForcedOpen = 4,
    ForcedClosed = 5,
    Disabled = 6,
}

/// Everything that admission and settlement must agree on, in one word that is swapped as a whole.
///
/// | bits | what |
/// |---|---|
/// | 3 | place |
/// | 3 | trips: how often it opened without having been healthy for long in between |
/// | 40 | stamp: when this phase began, in units, and at the same time the generation of its tickets |
/// | 18 | closed: failures in a row. half-open: probes under way, successes, failures (6 bits each) |
///
/// The stamp only grows: a transition takes the present time or, if that is not later, the old stamp plus one.
/// So it is unique, a ticket that carries another stamp is late, and no counter beside it can wrap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

const COUNT_BITS: u32 = 6;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const LOW_BITS: u32 = 18;
const LOW_MASK: u64 = (1 << LOW_BITS) - 1;
const STAMP_BITS: u32 = 40;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
const TRIPS_SHIFT: u32 = LOW_BITS + STAMP_BITS;
const PLACE_SHIFT: u32 = TRIPS_SHIFT + 3;

/// The most probes, successes and failures that half-open can count.
pub(crate) const PROBES_MAX: u32 = COUNT_MASK as u32;
/// The most failures in a row that closed can count.
pub(crate) const STREAK_MAX: u32 = LOW_MASK as u32;
/// What three bits count.
const TRIPS_MAX: u64 = 7;

impl Word {
    pub(crate) const fn new(place: Place, stamp: u64) -> Self {
        Word((place as u64) << PLACE_SHIFT | (stamp & STAMP_MASK) << LOW_BITS)
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Word(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn place(self) -> Place {
        match self.0 >> PLACE_SHIFT {
            0 => Place::Closed,
            1 => Place::Ramping,
            2 => Place::Open,
            3 => Place::HalfOpen,
            4 => Place::ForcedOpen,
            5 => Place::ForcedClosed,
            _ => Place::Disabled,
        }
    }

    pub(crate) const fn stamp(self) -> u64 {
        self.0 >> LOW_BITS & STAMP_MASK
    }

    pub(crate) const fn trips(self) -> u32 {
        (self.0 >> TRIPS_SHIFT & TRIPS_MAX) as u32
    }

    /// Failures in a row, while closed.
    pub(crate) const fn streak(self) -> u32 {
        (self.0 & LOW_MASK) as u32
    }

    pub(crate) const fn probes(self) -> u32 {
        (self.0 & COUNT_MASK) as u32
    }

    pub(crate) const fn successes(self) -> u32 {
        (self.0 >> COUNT_BITS & COUNT_MASK) as u32
    }

    pub(crate) const fn failures(self) -> u32 {
        (self.0 >> (2 * COUNT_BITS) & COUNT_MASK) as u32
    }

    pub(crate) const fn with_trips(self, trips: u32) -> Self {
        let trips = if trips as u64 > TRIPS_MAX { TRIPS_MAX } else { trips as u64 };
        Word(self.0 & !(TRIPS_MAX << TRIPS_SHIFT) | trips << TRIPS_SHIFT)
    }

    pub(crate) const fn with_streak(self, streak: u32) -> Self {
        Word(self.0 & !LOW_MASK | streak as u64 & LOW_MASK)
    }

    pub(crate) const fn with_counts(self, probes: u32, successes: u32, failures: u32) -> Self {
        let low = probes as u64 & COUNT_MASK
            | (successes as u64 & COUNT_MASK) << COUNT_BITS
            | (failures as u64 & COUNT_MASK) << (2 * COUNT_BITS);
        Word(self.0 & !LOW_MASK | low)
    }

    pub(crate) const fn with_place(self, place: Place) -> Self {
        Word(self.0 & !(7 << PLACE_SHIFT) | (place as u64) << PLACE_SHIFT)
    }

    /// The same place with a new stamp: no ticket of the old one is valid any more.
    pub(crate) const fn restamped(self, now: u64) -> Self {
        Word(self.0 & !(STAMP_MASK << LOW_BITS) | (self.next_stamp(now) & STAMP_MASK) << LOW_BITS)
    }

    /// The stamp of a transition at `now`.
    pub(crate) const fn next_stamp(self, now: u64) -> u64 {
        let next = self.stamp() + 1;
        if now > next { now } else { next }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}", self.place(), self.stamp())?;
        if self.place() == Place::HalfOpen {
            write!(f, "(probes {}, good {}, bad {})", self.probes(), self.successes(), self.failures())
        } else {
            write!(f, "(streak {}, trips {})", self.streak(), self.trips())
        }
    }
}
