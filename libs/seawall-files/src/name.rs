//! Names and ids of files, and the type of what is in them.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{FileError, FileRefusal};

/// The maximum number of bytes of a file's name. With its id before it and a suffix after it, it is still a name that disks take.
pub const NAME_BYTES_MAX: usize = 180;

const UUID_CHARS: usize = 36;

/// The id of a stored file: `{uuid}_{name}`.
///
/// Ids are unique. They are not secrets: whoever may not read a file has to be refused by the program that serves it.
///
/// ```
/// use seawall_files::FileId;
/// let id: FileId = "7f8a6a3e-2c0b-4d7e-9a51-0c9a3e0d1b2c_report.pdf".parse()?;
/// assert_eq!(id.name(), "report.pdf");
/// assert!("../../etc/passwd".parse::<FileId>().is_err());
/// # Ok::<(), seawall_files::FileError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(String);

impl FileId {
    /// Creates an id that no other file has.
    pub(crate) fn new(name: &str) -> Self {
        FileId(format!("{}_{name}", random_uuid()))
    }

    /// The id as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that the file was uploaded with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0[UUID_CHARS + 1..]
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FileId {
    type Err = FileError;

    fn from_str(text: &str) -> Result<Self, FileError> {
        let is_id = || {
            let (uuid, name) = text.split_once('_')?;
            let is_uuid = uuid.len() == UUID_CHARS
                && uuid.bytes().enumerate().all(|(index, byte)| match index {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
                });
            (is_uuid && check_name(name).is_ok()).then_some(())
        };
        match is_id() {
            Some(()) => Ok(FileId(text.to_owned())),
            None => Err(FileError::refused("reading the id of a file", FileRefusal::BadId)),
        }
    }
}

/// Refuses names that are no names: empty, too long, with separators, control characters, or characters that reverse or hide
/// what stands beside them.
pub(crate) fn check_name(name: &str) -> Result<(), FileRefusal> {
    if name.is_empty() {
        return Err(FileRefusal::NameMissing);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(FileRefusal::NameTooLong);
    }
    let is_unsafe = |c: char| {
        matches!(c, '/' | '\\' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            || c.is_control()
    };
    // A name that is only dots and spaces is a folder, or nothing.
    let is_hollow = name.chars().all(|c| c == '.' || c.is_whitespace());
    if name.contains(is_unsafe) || name.contains("..") || is_hollow {
        return Err(FileRefusal::NameUnsafe);
    }
    Ok(())
}

/// The extension of a name in small letters; empty if it has none.
pub(crate) fn extension_of(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((before, extension)) if !before.is_empty() => extension.to_lowercase(),
        _ => String::new(),
    }
}

/// The type of what is in a file, by its extension: `application/pdf` for `report.pdf`. An unknown one is
/// `application/octet-stream`, which no browser runs.
#[must_use]
pub fn content_type(name: &str) -> &'static str {
    let extension = extension_of(name);
    let known = CONTENT_TYPES.iter().find(|(known, _)| *known == extension);
    known.map_or("application/octet-stream", |(_, content_type)| content_type)
}

/// The extensions that have a type of their own.
pub(crate) const CONTENT_TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eml", "message/rfc822"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// A random UUID (version 4), from the keys that the operating system gave to the standard library's hasher.
pub(crate) fn random_uuid() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let word = || RandomState::new().hash_one((COUNT.fetch_add(1, Ordering::Relaxed), std::process::id()));
    let high = word() & !0xF000 | 0x4000;
    let low = word() & !(0b11 << 62) | 0b10 << 62;
    let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xFFFF_FFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-8: separators, `..`, control characters and names that are too long are refused.
    #[test]
    fn adp_8_names_that_are_no_names_are_refused() {
        for good in [
            "report.pdf",
            "Bericht für März (1).pdf",
            "archive.tar.gz",
            ".env.txt",
            "报告.pdf",
            &"a".repeat(180),
        ] {
            assert_eq!(check_name(good), Ok(()), "{good}");
            let id = FileId::new(good);
            assert_eq!(id.as_str().parse::<FileId>().unwrap(), id);
            assert_eq!(id.name(), good);
        }
        for bad in [
            "a/b.pdf",
            "a\\b.pdf",
            "..",
            "../x.pdf",
            "x..pdf",
            ".",
            " ",
            "a\0.pdf",
            "a\n.pdf",
            "a\u{7f}.pdf",
            "invoice\u{202e}fdp.exe",
            "a\u{200b}.pdf",
        ] {
            assert_eq!(check_name(bad), Err(FileRefusal::NameUnsafe), "{bad:?}");
        }
        assert_eq!(check_name(""), Err(FileRefusal::NameMissing));
        assert_eq!(check_name(&"a".repeat(181)), Err(FileRefusal::NameTooLong));
    }

    /// ADP-8: an id of a file is a UUID and a name, and nothing else passes for one.
    #[test]
    fn adp_8_what_is_no_id_is_refused() {
        let uuid = random_uuid();
        for bad in [
            "",
            "report.pdf",
            &uuid,
            &format!("{uuid}_"),
            &format!("{uuid}_../x"),
            &format!("{uuid}_a/b"),
            "_x.pdf",
        ] {
            assert!(bad.parse::<FileId>().is_err(), "{bad:?}");
        }
        assert!(format!("{}_a.pdf", uuid.to_uppercase()).parse::<FileId>().is_err());
        assert_ne!(random_uuid(), random_uuid());
    }

    /// ADP-8: the content type follows from the extension, whatever its case.
    #[test]
    fn adp_8_the_content_type_follows_from_the_extension() {
        assert_eq!(content_type("Report.PDF"), "application/pdf");
        assert_eq!(content_type("archive.tar.gz"), "application/gzip");
        for unknown in ["report", "report.exe", ".pdf", "pdf"] {
            assert_eq!(content_type(unknown), "application/octet-stream", "{unknown}");
        }
    }
}
