//! A file that is being written into the spool and is not yet accepted.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::room::Room;
use super::{Spool, bytes_of};
use crate::body::FileBody;
use crate::error::FileError;
use crate::name::random_uuid;

/// A file in the folder `staging`. It is removed when the value is dropped, unless it was accepted.
pub(crate) struct StagedFile {
    spool: Spool,
    path: PathBuf,
    /// Locked as long as it is open, so that nobody takes it for what a crash left behind.
    file: Option<File>,
    hasher: Sha256,
    bytes: u64,
}

impl StagedFile {
    pub(super) async fn create(spool: Spool) -> Result<Self, FileError> {
        let owner = spool.clone();
        let create = move |shared: &super::SharedSpool| {
            shared.room.counted(shared.folder.bytes()?);
            let path = shared.folder.staging().join(random_uuid());
            let file = File::create_new(&path)?;
            file.lock()?;
            Ok(StagedFile { spool: owner, path, file: Some(file), hasher: Sha256::new(), bytes: 0 })
        };
        spool.blocking("writing into the spool", create).await
    }

    /// Appends bytes. If the disk does not take them, they come back with the file as it was.
    pub(crate) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, WriteFailure> {
        let spool = self.spool.clone();
        let write = move |shared: &super::SharedSpool| {
            Ok(match self.append(&shared.room, &pieces) {
                Ok(()) => Ok(self),
                Err(error) => Err(WriteFailure {
                    rest: Some((self, pieces)),
                    error: FileError::disk("writing into the spool", error),
                }),
            })
        };
        match spool.blocking("writing into the spool", write).await {
            Ok(written) => written,
            Err(error) => Err(WriteFailure { rest: None, error }),
        }
    }

    fn append(&mut self, room: &Room, pieces: &[Bytes]) -> io::Result<()> {
        let (before, count) = (self.bytes, bytes_of(pieces));
        let file = self.file.as_mut().ok_or_else(closed)?;
        room.take(count)?;
        if let Err(error) = pieces.iter().try_for_each(|piece| file.write_all(piece)) {
            room.give_back(count);
            file.set_len(before)?;
            file.seek(io::SeekFrom::Start(before))?;
            return Err(error);
        }
        pieces.iter().for_each(|piece| self.hasher.update(piece));
        self.bytes += count;
        Ok(())
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The SHA-256 of the bytes so far, in hexadecimal.
    pub(crate) fn checksum(&self) -> String {
        hexadecimal(&self.hasher.clone().finalize())
    }

    /// The bytes that were written, as often as they are needed.
    pub(crate) fn body(&self) -> FileBody {
        FileBody::from_path(&self.path)
    }

    /// Makes the bytes durable and gives the file away.
    pub(super) fn into_durable(mut self, to: &Path) -> io::Result<()> {
        self.file.as_ref().ok_or_else(closed)?.sync_all()?;
        fs::rename(&self.path, to)?;
        self.file = None;
        Ok(())
    }
}

/// Bytes that the disk did not take.
pub(crate) struct WriteFailure {
    /// The file as it was, and the bytes that it lacks; `None` if the disk did not answer at all.
    pub(crate) rest: Option<(StagedFile, Vec<Bytes>)>,
    pub(crate) error: FileError,
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        self.spool.shared.room.give_back(self.bytes);
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn closed() -> io::Error {
    io::Error::other("the file is closed")
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
