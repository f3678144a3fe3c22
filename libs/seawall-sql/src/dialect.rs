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
    // The time of this very moment, which moves on in a long transaction. No index is used for a comparison with it.
    (clock) => {
        "clock_timestamp()"
    };
    (interval $millis:literal) => {
        concat!($millis, " * interval '1 millisecond'")
    };
    (later $millis:literal) => {
        concat!("now() + ", postgres_sql!(interval $millis))
    };
    (earlier $millis:literal) => {
        concat!("now() - ", postgres_sql!(interval $millis))
    };
    // A time as milliseconds since 1970.
    (millis $time:literal) => {
        concat!("floor(extract(epoch FROM ", $time, ") * 1000)::BIGINT")
    };
    (millis_now) => {
        postgres_sql!(millis "now()")
    };
    // How long it is from this moment to a time.
    (millis_until $time:literal) => {
        concat!("ceil(extract(epoch FROM ", $time, " - clock_timestamp()) * 1000)::BIGINT")
    };
    (uuid $text:literal) => {
        concat!($text, "::TEXT::UUID")
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
    (clock) => {
        sqlite_sql!(now)
    };
    (interval $millis:literal) => {
        $millis
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
    (millis_until $time:literal) => {
        concat!($time, " - ", sqlite_sql!(now))
    };
    (uuid $text:literal) => {
        concat!("lower(", $text, ")")
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
