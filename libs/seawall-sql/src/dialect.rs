//! The words in which the two databases differ. Statements that are the same otherwise are written once, in macros that take
//! the dialect as a parameter: `$sql!(later "$4")` is the time that lies the fourth parameter ahead.
//!
//! Times are `TIMESTAMPTZ` in PostgreSQL and milliseconds since 1970 in SQLite. Durations are bound as milliseconds in both.

/// The dialect of PostgreSQL. `now()` is the beginning of the transaction.
#[cfg(feature = "postgres")]
macro_rules! postgres_sql {
    (now) => {
        "now()"
    };
    (later $millis:literal) => {
        concat!("now() + ", $millis, " * interval '1 millisecond'")
    };
    (earlier $millis:literal) => {
        concat!("now() - ", $millis, " * interval '1 millisecond'")
    };
    // A time as milliseconds since 1970.
    (millis $time:literal) => {
        concat!("floor(extract(epoch FROM ", $time, ") * 1000)::BIGINT")
    };
    (millis_now) => {
        postgres_sql!(millis "now()")
    };
    (greatest) => {
        "greatest"
    };
    (position) => {
        "strpos"
    };
    (skip_locked) => {
        " FOR UPDATE SKIP LOCKED"
    };
}

/// The dialect of SQLite. The time is the same in all of a statement.
#[cfg(feature = "sqlite")]
macro_rules! sqlite_sql {
    (now) => {
        "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"
    };
    (later $millis:literal) => {
        concat!(sqlite_sql!(now), " + ", $millis)
    };
    (earlier $millis:literal) => {
        concat!(sqlite_sql!(now), " - ", $millis)
    };
    (millis $time:literal) => {
        $time
    };
    (millis_now) => {
        sqlite_sql!(now)
    };
    (greatest) => {
        "max"
    };
    (position) => {
        "instr"
    };
    (skip_locked) => {
        ""
    };
}
