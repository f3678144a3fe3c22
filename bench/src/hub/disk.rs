//! What the disk can do: the limit that no hub passes which answers only when an event is on it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::event::EVENT_BYTES;
use super::report::Row;

pub const SCENE: &str = "the disk, in the same run, no hub";
pub const ONE_ROW: &str = "SQLite: 1 row of 1 KiB a commit";
pub const HUNDRED_ROWS: &str = "SQLite: 100 rows of 1 KiB a commit";

/// Appends, single rows, and rows by the hundred, each for so long.
pub fn rows(folder: &Path, time: Duration) -> Result<Vec<Row>, String> {
    let folder = folder.join("disk");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("can't make `{}`: {error}", folder.display()))?;
    let appends =
        appends(&folder, time).map_err(|error| format!("the disk does not take a file: {error}"))?;
    let mut rows = vec![row("4 KiB appended and synchronised", appends)];
    for (name, together) in [(ONE_ROW, 1), (HUNDRED_ROWS, 100)] {
        let done = commits(&folder.join(format!("{together}.db")), time, together);
        rows.push(row(name, done.map_err(|error| format!("SQLite: {error}"))?));
    }
    let _ = fs::remove_dir_all(&folder);
    Ok(rows)
}

fn row(name: &str, (count, time): (u64, Duration)) -> Row {
    Row {
        scene: SCENE,
        name: name.to_owned(),
        events: count,
        rate: Some(count as f64 / time.as_secs_f64()),
        cpu_us: None,
        driver_us: None,
        p50_ms: None,
        p95_ms: None,
        p99_ms: None,
        rss_mb: None,
        peak_mb: None,
        notes: Vec::new(),
    }
}

fn appends(folder: &Path, time: Duration) -> std::io::Result<(u64, Duration)> {
    let mut file = File::create(folder.join("appended"))?;
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < time {
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok((count, began.elapsed()))
}

/// Rows in a table like the hub's, written as the hub writes.
fn commits(path: &Path, time: Duration, together: u64) -> rusqlite::Result<(u64, Duration)> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.execute_batch("CREATE TABLE events (number INTEGER PRIMARY KEY, payload BLOB NOT NULL)")?;
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < time {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..together {
            let mut insert = connection.prepare_cached("INSERT INTO events (payload) VALUES (?1)")?;
            insert.execute(params![&[7_u8; EVENT_BYTES][..]])?;
        }
        connection.execute_batch("COMMIT")?;
        count += together;
    }
    Ok((count, began.elapsed()))
}
