//! Statements with the names of states in them, put together by the compiler.
//!
//! # Why literals and not parameters?
//! SQLite uses a partial index only where a statement repeats the condition of the index word by word, so a state has to be in the
//! text. The numbers stand here and nowhere else; `record/number.rs` has them for what reads rows, and a test holds the two together.

/// Concatenates texts and names of states to one statement: `sql!("… WHERE state = " LEASED)`.
macro_rules! sql {
    ($($part:tt)+) => { concat!($($crate::sql::part!($part)),+) };
}

/// A text as it is, or the number of a state, or a condition on states that an index has.
macro_rules! part {
    (LEASED) => { "0" };
    (QUEUED) => { "1" };
    (WAITING) => { "2" };
    (STALLED) => { "3" };
    (BLOCKED) => { "4" };
    (HELD) => { "5" };
    (HOLDING) => { "6" };
    (DELIVERED) => { "7" };
    (DEAD) => { "8" };
    // The condition of `deliveries_leased`.
    (IS_LEASED) => { $crate::sql::sql!("state = " LEASED) };
    // The condition of `deliveries_waiting`: pending, and not claimed.
    (IS_WAITING) => { $crate::sql::sql!("state > " LEASED " AND state < " HOLDING) };
    // The condition of `deliveries_ordered`, without the key.
    (OCCUPIES_ORDER) => { $crate::sql::sql!("state < " DELIVERED) };
    // The conditions of the indexes of orders on PostgreSQL: a delivery is active in its order, or waits in it.
    (ACTIVE_IN_ORDER) => { $crate::sql::sql!("state IN (" LEASED ", " QUEUED ", " WAITING ", " STALLED ", " HELD ")") };
    (WAITS_IN_ORDER) => { $crate::sql::sql!("state IN (" BLOCKED ", " HOLDING ")") };
    (PENDING_UNCLAIMED) => { $crate::sql::sql!("(" QUEUED ", " WAITING ", " STALLED ", " BLOCKED ", " HELD ")") };
    (NODE_LIVE) => { "0" };
    (NODE_STOPPED) => { "1" };
    (NODE_DEAD) => { "2" };
    (LETTER_REPLAYING) => { "1" };
    (LETTER_DELIVERED) => { "2" };
    (LETTER_FAILED_AGAIN) => { "3" };
    (LETTER_DELETED) => { "5" };
    // What decides about the state of a group; the counts are in the order of `LetterState::ALL`.
    (GROUP_FACTS) => { "state, open, replaying, delivered, failed_again, parked, deleted" };
    ($text:literal) => { $text };
}

pub(crate) use {part, sql};
