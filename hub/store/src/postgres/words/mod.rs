//! The words of a text, and how a search asks for them.
//!
//! # Why not the parsers of PostgreSQL?
//! They make `-7731` of `A-7731`, and one word of a host or an address. So words are made here, exactly as SQLite's tokenizer
//! `unicode61` makes them: runs of letters and digits in lower case, without diacritics. The database gets them one by one.
//!
//! # What is not found?
//! A row has [`POSITIONS_MAX`] positions, and PostgreSQL keeps 255 of them for a word. A word behind or beyond these is found by
//! itself, but not as part of a phrase.

mod table;

use std::fmt::Write;

use self::table::{BORDERS, FOLDED};
use crate::search_text::pieces;

/// The number of words of a text that have a position: more can't be stored.
const POSITIONS_MAX: usize = 16_383;
/// The longest word in bytes: a longer one is cut, in texts and in searches alike.
const WORD_MAX: usize = 2_046;
/// The diacritics that belong to a word and are left out of it, as bits from U+0300 on.
const DIACRITICS: u64 = 0x0003_61f8_0802_9fdf;
const FIRST_DIACRITIC: u32 = 0x300;

/// Returns the words of a text in their order.
pub(in crate::postgres) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    for one in text.chars() {
        if is_part(one) {
            word.get_or_insert_default().extend(folded(one));
        } else if let Some(word) = &mut word
            && is_diacritic(one)
        {
            word.extend(folded(one));
        } else {
            words.extend(word.take().map(cut));
        }
    }
    words.extend(word.map(cut));
    words
}

/// Returns the words of a text as a `tsvector`.
pub(in crate::postgres) fn vector(text: &str) -> String {
    let mut vector = String::with_capacity(text.len() * 2);
    for (position, word) in (1..).zip(words(text)) {
        // A word has neither quotes nor backslashes.
        let _ = if position <= POSITIONS_MAX {
            write!(vector, "'{word}':{position} ")
        } else {
            write!(vector, "'{word}' ")
        };
    }
    vector
}

/// Converts a search text to a `tsquery`: every word must occur, quoted words in this order, and the last word may be a prefix.
/// Returns `None` if nothing can match. Nothing in the text is an operator.
pub(in crate::postgres) fn query(text: &str) -> Option<String> {
    let pieces = pieces(text);
    let last = pieces.len().checked_sub(1)?;
    let phrases = pieces.iter().enumerate().filter_map(|(place, (piece, open))| {
        let words: Vec<String> = words(piece).iter().map(|word| format!("'{word}'")).collect();
        let prefix = if place == last && *open { ":*" } else { "" };
        (!words.is_empty()).then(|| words.join(" <-> ") + prefix)
    });
    let phrases: Vec<String> = phrases.collect();
    (!phrases.is_empty()).then(|| phrases.join(" & "))
}

fn is_part(one: char) -> bool {
    if one.is_ascii() {
        return one.is_ascii_alphanumeric();
    }
    BORDERS.partition_point(|border| *border <= one as u32) % 2 == 1
}

fn is_diacritic(one: char) -> bool {
    let bit = (one as u32).wrapping_sub(FIRST_DIACRITIC);
    bit < u64::BITS && DIACRITICS >> bit & 1 == 1
}

/// Returns a character in lower case and without its diacritic; nothing for a diacritic.
fn folded(one: char) -> Option<char> {
    if one.is_ascii() {
        return Some(one.to_ascii_lowercase());
    }
    if is_diacritic(one) {
        return None;
    }
    let (runs, _) = FOLDED.as_chunks::<4>();
    let behind = runs.partition_point(|[first, ..]| *first <= one as u32);
    let Some([first, last, how, to]) = behind.checked_sub(1).map(|run| runs[run]) else { return Some(one) };
    let (distance, inside) = (one as u32 - first, one as u32 <= last);
    match how {
        0 if inside => char::from_u32(to),
        1 if inside => char::from_u32(to + distance),
        2 if inside && distance.is_multiple_of(2) => char::from_u32(to + distance),
        _ => Some(one),
    }
}

/// Cuts a word that is too long for the database.
fn cut(mut word: String) -> String {
    word.truncate(word.floor_char_boundary(WORD_MAX));
    word
}

#[cfg(test)]
mod tests;
