//! What a gate does: a pure function of its word, an event and the limit.
//!
//! The word says how many are inside and whether anybody waits. While nobody does, entering and leaving is one
//! compare-and-swap. While somebody does, the line decides, under its lock, and nobody overtakes it.

/// A gate in 64 bits: how many are inside, and whether there is a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Word {
    pub(crate) inside: u32,
    pub(crate) line: bool,
}

impl Word {
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Word { inside: (bits >> 1) as u32, line: bits & 1 == 1 }
    }

    pub(crate) const fn bits(self) -> u64 {
        (self.inside as u64) << 1 | self.line as u64
    }
}

/// What happens at a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Somebody comes.
    Enter,
    /// Somebody leaves.
    Leave,
    /// Whoever holds the line's lock lets somebody stand in it, because it is full.
    Queue,
    /// Whoever holds the line's lock passes a place on to the first of the line, or gives it up.
    PassOn { line_is_empty: bool, line_ends: bool },
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Entered,
    Left,
    /// It is full: refuse, or ask the line.
    Full,
    /// There is a line: it decides.
    AskTheLine,
    Queued,
    /// The place goes to the first of the line.
    Passed,
}

/// The one transition function.
#[inline]
pub(crate) fn step(word: Word, event: Event, limit: u32) -> (Word, Effect) {
    let Word { inside, line } = word;
    match event {
        Event::Enter if line => (word, Effect::AskTheLine),
        Event::Enter if inside < limit => (Word { inside: inside + 1, line }, Effect::Entered),
        Event::Enter => (word, Effect::Full),
        Event::Leave if line => (word, Effect::AskTheLine),
        Event::Leave => (Word { inside: inside - 1, line }, Effect::Left),
        // Somebody has left in the meantime, before there was a line to ask: enter instead.
        Event::Queue if inside < limit && !line => (Word { inside: inside + 1, line }, Effect::Entered),
        Event::Queue => (Word { inside, line: true }, Effect::Queued),
        Event::PassOn { line_is_empty: true, .. } => (Word { inside: inside - 1, line: false }, Effect::Left),
        // The limit was lowered: this place is not there any more.
        Event::PassOn { .. } if inside > limit => (Word { inside: inside - 1, line }, Effect::Left),
        Event::PassOn { line_ends, .. } => (Word { inside, line: !line_ends }, Effect::Passed),
    }
}
