//! A database of which something can't be read any more.
//!
//! Damage is found when a damaged page is read, which may take days. So that a start after it does not promise anything
//! until it is found again, a note is left beside the database. A start that finds the note looks at the whole database.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use seawall_hub_core::port::store::StoreError;

use crate::sqlite::SqliteInner;
use crate::sqlite::engine::writer::translate;

impl SqliteInner {
    /// Accepts nothing more once something can't be read, and logs that once.
    pub(crate) fn notice_damage(&self, error: &StoreError) {
        if let StoreError::Damaged(reason) = error
            && self.queue.damage(reason)
        {
            self.disk.damaged(error);
            note(&self.path, reason);
        }
    }
}

fn note_of(database: &Path) -> PathBuf {
    database.with_file_name("damaged")
}

/// Leaves a note for the next start.
fn note(database: &Path, reason: &str) {
    // If that can't be written, the next start finds the damage when somebody reads it.
    let _ = fs::write(note_of(database), format!("{reason}\n"));
}

/// Returns the damage that an earlier process noted, if it is still there. The note of a repaired database is removed.
pub(crate) fn found(database: &Path, connection: &Connection) -> Option<StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::Sqlite;

    /// PRM-8: a note beside a database that is sound goes, and nothing is refused.
    #[test]
    fn prm_8_a_database_that_was_put_right_is_not_damaged() {
        let folder = tempfile::TempDir::new().unwrap();
        drop(Sqlite::open(folder.path(), &seawall::Clock::system()).unwrap());
        let database = folder.path().join("seawall.db");
        note(&database, "database disk image is malformed");
        let store = Sqlite::open(folder.path(), &seawall::Clock::system()).unwrap();
        assert_eq!(store.damaged(), None);
        assert!(!note_of(&database).exists());
    }
}
