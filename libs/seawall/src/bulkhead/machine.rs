//! What a gate does: a pure function of its word, an event and the limit.
//!
//! The word says how many places are taken and whether anybody waits. While nobody does, entering and leaving is one step
//! on the word. While somebody does, only whoever holds the line's lock takes places, for the first of the line, so nobody
//! overtakes it; leaving is the same step as ever, and whoever leaves then looks at the line.

/// A gate in 64 bits: how many places are taken, and whether there is a line.
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
        Self::taken(self.inside) | self.line as u64
    }

    /// What so many places are in the word, to be added and taken away.
    pub(crate) const fn taken(places: u32) -> u64 {
        (places as u64) << 1
    }
}

/// What happens at a gate. A weight is the number of places that a call takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Somebody comes.
    Enter { weight: u32 },
    /// Somebody leaves. The shell does so by a plain subtraction.
    #[cfg(test)]
    Leave { weight: u32 },
    /// Whoever holds the line's lock lets somebody stand in it, because it is full.
    Queue { weight: u32 },
    /// Whoever holds the line's lock lets the first of the line in, if there is room for it.
    Admit { weight: u32, line_ends: bool },
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Entered,
    #[cfg(test)]
    Left,
    /// It is full: refuse, or ask the line.
    Full,
    /// There is a line: it decides.
    AskTheLine,
    Queued,
}

/// The one transition function.
#[inline]
pub(crate) fn step(word: Word, event: Event, limit: u32) -> (Word, Effect) {
    let Word { inside, line } = word;
    let room = limit.saturating_sub(inside);
    match event {
        Event::Enter { .. } if line => (word, Effect::AskTheLine),
        Event::Enter { weight } if weight <= room => {
            (Word { inside: inside + weight, line }, Effect::Entered)
        }
        Event::Enter { .. } => (word, Effect::Full),
        #[cfg(test)]
        Event::Leave { weight } => {
            let effect = if line { Effect::AskTheLine } else { Effect::Left };
            (Word { inside: inside - weight, line }, effect)
        }
        // Somebody has left in the meantime, before there was a line to ask: enter instead.
        Event::Queue { weight } if weight <= room && !line => {
            (Word { inside: inside + weight, line }, Effect::Entered)
        }
        Event::Queue { .. } => (Word { inside, line: true }, Effect::Queued),
        Event::Admit { weight, line_ends } if weight <= room => {
            (Word { inside: inside + weight, line: !line_ends }, Effect::Entered)
        }
        Event::Admit { .. } => (word, Effect::Full),
    }
}
