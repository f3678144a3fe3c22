//! Messages that are stored with the data they tell of, and published later.
