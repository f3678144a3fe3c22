//! A set of workers by their number.

/// So many workers share a word.
pub(super) const WORD: usize = 64;

/// A set of numbers below a bound. Finding the next one looks at 64 at once, so a thousand workers are 16 looks.
#[derive(Debug)]
pub(super) struct Bits(Box<[u64]>);

impl Bits {
    pub(super) fn none(bound: usize) -> Self {
        Bits(vec![0; bound.div_ceil(WORD)].into())
    }

    pub(super) fn all(bound: usize) -> Self {
        let mut bits = Bits::none(bound);
        for (at, word) in bits.0.iter_mut().enumerate() {
            let left = bound - at * WORD;
            *word = if left >= WORD { u64::MAX } else { (1 << left) - 1 };
        }
        bits
    }

    pub(super) fn insert(&mut self, number: usize) {
        self.0[number / WORD] |= 1 << (number % WORD);
    }

    pub(super) fn remove(&mut self, number: usize) {
        self.0[number / WORD] &= !(1 << (number % WORD));
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.0[number / WORD] & (1 << (number % WORD)) != 0
    }

    /// The first at or after this one, else the first of all.
    pub(super) fn next_from(&self, number: usize) -> Option<usize> {
        let word = number / WORD;
        let late = self.0[word] & (u64::MAX << (number % WORD));
        if late != 0 {
            return Some(word * WORD + late.trailing_zeros() as usize);
        }
        let words = self.0.len();
        let found = (1..=words).map(|ahead| (word + ahead) % words).find(|&at| self.0[at] != 0)?;
        Some(found * WORD + self.0[found].trailing_zeros() as usize)
    }

    /// Takes the smallest out.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let first = self.0.iter().position(|&word| word != 0)?;
        let number = first * WORD + self.0[first].trailing_zeros() as usize;
        self.0[first] &= self.0[first] - 1;
        Some(number)
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_next_one_and_begins_again_at_the_end() {
        let mut bits = Bits::none(130);
        assert_eq!((bits.next_from(0), bits.pop()), (None, None));
        for number in [3, 64, 129] {
            bits.insert(number);
        }
        let next: Vec<_> = [0, 3, 4, 64, 65, 129].map(|from| bits.next_from(from).unwrap()).into();
        assert_eq!(next, [3, 3, 64, 64, 129, 129]);
        bits.remove(129);
        assert_eq!((bits.next_from(65), bits.contains(129), bits.contains(64)), (Some(3), false, true));
        assert_eq!((bits.pop(), bits.pop(), bits.pop()), (Some(3), Some(64), None));
    }

    #[test]
    fn all_are_exactly_those_below_the_bound() {
        for bound in [1, 63, 64, 65, 128, 130] {
            let mut bits = Bits::all(bound);
            let popped: Vec<_> = std::iter::from_fn(|| bits.pop()).collect();
            assert_eq!(popped, (0..bound).collect::<Vec<_>>());
        }
    }
}
