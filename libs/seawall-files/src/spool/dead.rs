//! Files that were given up, and their way back.

use std::io;

use seawall_dist::Millis;
use seawall_dist::deadletter::{
    Attempt, LetterFault, Origin, Record, ReplayError, ReplayFuture, ReplayMessage, Replayer,
};

use super::folder::QueueEntry;
use super::letters::{DeadFiles, put_letter};
use super::row::Row;
use super::{SharedSpool, Spool};
use crate::name::FileId;

/// The reason of a letter whose file the store refuses: access denied, or a request that it does not take.
pub const REASON_REFUSED: &str = "refused";

/// The reason of a letter whose file failed again and again while others were sent.
pub const REASON_ATTEMPTS: &str = "attempts";

/// The reason of a letter whose file or row is not what was written.
pub const REASON_CORRUPT: &str = "corrupt";

/// The kind of the origin of these letters.
const ORIGIN_KIND: &str = "files";

impl Spool {
    /// Gives a file up: its bytes go to `dead`, a letter says why, and its row goes last. A crash in between leaves the row, and
    /// the next sender finishes.
    pub(super) fn bury(&self, entry: &QueueEntry, row: &Row, reason: &str, message: &str) -> io::Result<()> {
        let SharedSpool { folder, metrics, .. } = &*self.shared;
        if folder.data(&row.id).exists() {
            folder.bury(&row.id)?;
        }
        put_letter(self, &self.record_of(row, reason, message))?;
        folder.remove_row(entry)?;
        metrics.given_up();
        Ok(())
    }

    /// Gives up a row that can't be read. The bytes of its file are kept.
    pub(super) fn bury_unreadable(&self, entry: &QueueEntry, message: &str) -> io::Result<Row> {
        let row = Row {
            id: entry.file_id().to_owned(),
            key: entry.file_id().to_owned(),
            content_type: crate::content_type(entry.file_id()).to_owned(),
            bytes: 0,
            checksum: String::new(),
            at: self.now(),
            trigger: "the row of the file could not be read".to_owned(),
            trace: None,
            attempts: Vec::new(),
            attempts_made: 0,
            strikes: 0,
        };
        self.bury(entry, &row, REASON_CORRUPT, message)?;
        Ok(row)
    }

    fn record_of(&self, row: &Row, reason: &str, message: &str) -> Record {
        let attempt = |attempt: &super::row::RowAttempt| Attempt {
            at: attempt.at,
            took: attempt.took,
            error: Some(attempt.error.clone()),
            ..Attempt::default()
        };
        Record {
            id: row.id.clone(),
            origin: Origin {
                kind: ORIGIN_KIND.to_owned(),
                place: self.shared.metrics.name().to_owned(),
                id: row.id.clone(),
                at: Some(row.at),
            },
            payload: row.to_json(),
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("file-key".to_owned(), row.key.clone()),
                ("file-bytes".to_owned(), row.bytes.to_string()),
                ("file-sha256".to_owned(), row.checksum.clone()),
                ("file-trigger".to_owned(), row.trigger.clone()),
            ],
            fault: LetterFault { reason: reason.to_owned(), message: Some(message.to_owned()) },
            at: self.now(),
            attempts: row.attempts.iter().map(attempt).collect(),
            trace: row.trace.clone(),
        }
    }

    /// Puts a file that was given up back at the end of the queue.
    fn requeue(&self, row: &Row) -> io::Result<()> {
        let folder = &self.shared.folder;
        let is_waiting = folder.data(&row.id).exists();
        if !is_waiting && !folder.dead(&row.id).exists() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the bytes of the file are gone"));
        }
        let is_queued = folder.entries()?.iter().any(|entry| entry.file_id() == row.id);
        if !is_waiting {
            folder.revive(&row.id)?;
        }
        if is_queued { Ok(()) } else { folder.enqueue(row) }
    }
}

/// Puts the file of a letter back into the queue. It is sent by the sender, and dies again if the store still refuses it.
impl Replayer for DeadFiles {
    fn replay(&self, message: ReplayMessage) -> ReplayFuture<'_> {
        Box::pin(async move {
            let mut row = Row::from_json(&message.payload)?;
            let _: FileId = row.id.parse()?;
            (row.attempts, row.attempts_made, row.strikes) = (Vec::new(), 0, 0);
            let spool = self.spool.clone();
            row.at = spool.now().max(Millis(0));
            let requeued = self.spool.blocking("replaying a file", move |_| spool.requeue(&row)).await;
            requeued.map_err(ReplayError::from)?;
            self.spool.shared.wake.notify_one();
            Ok(())
        })
    }
}
