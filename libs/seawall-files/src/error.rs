//! The error of files.

use std::error::Error;
use std::fmt;

use seawall::fault::Verdict;
use seawall::{Class, Fault};

/// A file was not stored, not found or not read.
///
/// Its [`source`](Error::source) is the [`Fault`], so that a guard around code with files knows whether another attempt may
/// help. The client's error is the [`cause`](FileError::cause).
#[derive(Debug)]
pub struct FileError {
    kind: FileErrorKind,
    action: &'static str,
    fault: Fault,
    /// Whether the store can't do it now. The fault alone does not say so: a guard that has spent its retries calls it permanent,
    /// so that nobody further out spends them again.
    is_store_away: bool,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a [`FileError`], in the order in which a caller should look at them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The file breaks a rule of the storage. Nothing was stored.
    Invalid(FileRefusal),
    /// The store has no such file.
    NotFound,
    /// The store refused the credentials, or they do not allow this (401, 403).
    Permission,
    /// The bytes that were to be stored could not be read to their end.
    Source,
    /// The local disk failed or is full.
    Disk,
    /// The store can't be reached.
    Connection,
    /// The store took too long.
    Timeout,
    /// The store answered that it could not (5xx), or asks for fewer requests.
    Server,
    /// The circuit of the store is open, or another policy refused the request. Nothing was sent.
    Rejected,
    /// Neither a store nor the spool took the file: it is lost unless the caller keeps it.
    DataLossRisk,
    /// Anything else.
    Other,
}

/// The rule that a file breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileRefusal {
    /// The name is empty.
    NameMissing,
    /// The name has more bytes than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX).
    NameTooLong,
    /// The name has a separator, a control character or one that can't be shown, or is `.` or `..`.
    NameUnsafe,
    /// The extension is not on the list, or there is none.
    ExtensionNotAllowed(String),
    /// The file has no bytes.
    Empty,
    /// The file has more bytes than allowed.
    TooLarge {
        /// The maximum number of bytes.
        bytes_max: u64,
    },
    /// Another number of bytes came than was declared.
    SizeMismatch {
        /// The declared number of bytes.
        declared: u64,
        /// The number of bytes that came, until the difference was seen.
        received: u64,
    },
    /// The text is no id of a file.
    BadId,
}

impl FileError {
    /// Creates the error of an action, such as "uploading a file", with what it means.
    #[must_use]
    pub fn new(kind: FileErrorKind, action: &'static str, fault: Fault) -> Self {
        let is_store_away = fault.is_transient() || fault.verdict() == Verdict::Rejected;
        FileError { kind, action, fault, is_store_away, cause: None }
    }

    /// Adds the error of the client library.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Creates the error of an action out of what the failure means.
    #[must_use]
    pub fn of_fault(action: &'static str, fault: Fault) -> Self {
        FileError::new(kind_of(fault), action, fault)
    }

    /// Says whether the store can't do it now, where the fault does not.
    pub(crate) fn store_away(mut self, is_store_away: bool) -> Self {
        self.is_store_away = is_store_away;
        self
    }

    pub(crate) fn refused(action: &'static str, refusal: FileRefusal) -> Self {
        FileError::new(FileErrorKind::Invalid(refusal), action, Fault::business().ran(seawall::Ran::No))
    }

    pub(crate) fn not_found(action: &'static str) -> Self {
        FileError::new(FileErrorKind::NotFound, action, Fault::business())
    }

    pub(crate) fn disk(action: &'static str, error: std::io::Error) -> Self {
        FileError::new(FileErrorKind::Disk, action, Fault::of_io(error.kind())).with_cause(error)
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &FileErrorKind {
        &self.kind
    }

    /// What the failure means: whether the operation took effect, and whether another attempt may help.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The error of the client library or of the operating system.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// Whether the store has no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == FileErrorKind::NotFound
    }

    /// Whether the store can't do it now, so that another store or the spool has to.
    #[must_use]
    pub fn is_store_away(&self) -> bool {
        self.is_store_away
    }
}

/// The kind that follows from a fault alone.
fn kind_of(fault: Fault) -> FileErrorKind {
    match (fault.verdict(), fault.class()) {
        _ if fault.is_unauthorised() => FileErrorKind::Permission,
        (Verdict::Rejected, _) => FileErrorKind::Rejected,
        (_, Class::Io) => FileErrorKind::Connection,
        (_, Class::Timeout) => FileErrorKind::Timeout,
        (_, Class::Protocol) => FileErrorKind::Server,
        _ => FileErrorKind::Other,
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.action, self.kind)?;
        let mut cause: Option<&dyn Error> = self.cause.as_deref().map(|cause| cause as &dyn Error);
        let mut last = String::new();
        while let Some(error) = cause {
            // Some clients repeat the cause of an error in its text.
            let text = error.to_string();
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            (last, cause) = (text, error.source());
        }
        Ok(())
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}

impl fmt::Display for FileErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileErrorKind::Invalid(refusal) => return refusal.fmt(f),
            FileErrorKind::NotFound => "there is no such file",
            FileErrorKind::Permission => "access denied",
            FileErrorKind::Source => "the source could not be read",
            FileErrorKind::Disk => "the local disk failed",
            FileErrorKind::Connection => "the store can't be reached",
            FileErrorKind::Timeout => "the store took too long",
            FileErrorKind::Server => "the store could not do it",
            FileErrorKind::Rejected => "the request was not sent",
            FileErrorKind::DataLossRisk => "data loss risk, neither a store nor the spool took the file",
            FileErrorKind::Other => "an unexpected error",
        })
    }
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileRefusal::NameMissing => f.write_str("file name is required"),
            FileRefusal::NameTooLong => write!(f, "file name exceeds {} bytes", crate::NAME_BYTES_MAX),
            FileRefusal::NameUnsafe => f.write_str("file name has a separator or a control character"),
            FileRefusal::ExtensionNotAllowed(extension) => write!(f, "file type not allowed: `{extension}`"),
            FileRefusal::Empty => f.write_str("file size must be positive"),
            FileRefusal::TooLarge { bytes_max } => write!(f, "file size exceeds limit: {bytes_max} bytes"),
            FileRefusal::SizeMismatch { declared, received } => {
                write!(f, "{declared} bytes were declared and {received} came")
            }
            FileRefusal::BadId => f.write_str("the text is no id of a file"),
        }
    }
}
