//! Steps with compensations, kept in a journal.
