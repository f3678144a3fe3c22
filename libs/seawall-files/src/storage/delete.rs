//! Deletes: everywhere, and without an error.

use super::FileStorage;
use super::report::Operation;
use crate::error::FileError;
use crate::name::FileId;

/// What became of a deletion.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeleteOutcome {
    /// No store has the file any more.
    Deleted,
    /// A store could not be asked, and may still have the file. Deleting again is safe.
    Incomplete(FileError),
}

impl DeleteOutcome {
    /// Whether no store has the file any more.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, DeleteOutcome::Deleted)
    }
}

impl FileStorage {
    /// Deletes a file from the spool and from all stores. A file that is not there counts as deleted. A failure is a warning in
    /// the log and part of the outcome, and no error: who deletes has nothing else to do.
    pub async fn delete_file(&self, id: &FileId) -> DeleteOutcome {
        let shared = &*self.shared;
        let span = shared.report.begin(Operation::Delete, id.as_str(), None);
        let mut failure = None;
        if let Some(spool) = &shared.spool {
            failure = spool.forget(id).await.err();
        }
        let key = shared.key(id);
        for store in shared.stores() {
            if let Err(error) = store.delete(&key).await {
                failure.get_or_insert(error);
            }
        }
        shared.report.deleted(&span, failure.as_ref());
        failure.map_or(DeleteOutcome::Deleted, DeleteOutcome::Incomplete)
    }
}
