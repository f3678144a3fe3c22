//! A database of which something can't be read any more.
//!
//! Damage is found by whoever reads the page that has it, which may take days. So that a start after it does not promise anything
//! until it is found again, a note is left beside the database. A start that finds the note looks at the whole database.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use seawall_hub_core::port::store::StoreError;

use super::unit_of_work::translate;

fn note_of(database: &Path) -> PathBuf {
    database.with_file_name("damaged")
}

/// Leaves a note for the next start.
pub(super) fn note(database: &Path, reason: &str) {
    // If that can't be written, the next start finds the damage when somebody reads it.
    let _ = fs::write(note_of(database), format!("{reason}\n"));
}

/// What is damaged, if a process before has left a note and it is still true. A database that was put right has no note any more.
pub(super) fn found(database: &Path, connection: &Connection) -> Option<StoreError> {
    let note = note_of(database);
    if !note.exists() {
        return None;
    }
    let checked = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match checked {
        Ok(word) if word == "ok" => {
            // If it can't go, the next start looks again.
            let _ = fs::remove_file(note);
            None
        }
        Ok(word) => Some(StoreError::Damaged(word.replace('\n', " "))),
        Err(error) => match translate(&error) {
            damaged @ StoreError::Damaged(_) => Some(damaged),
            _ => None,
        },
    }
}
