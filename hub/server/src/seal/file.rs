//! The file that holds the keys.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use seawall_hub_core::encode::{bytes_of_hex, hex};

pub(super) const KEY_LEN: usize = 32;
/// The first line. A file without it is the key alone, as the first version wrote it.
const HEAD: &str = "seawall keys";
/// The number of the key in such a file.
pub(super) const FIRST: u32 = 1;

/// The keys of a folder by their numbers. The one with the highest number seals. Shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyFile {
    keys: BTreeMap<u32, [u8; KEY_LEN]>,
}

impl KeyFile {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("secret.key")
    }

    /// One new key.
    pub(super) fn fresh() -> io::Result<Self> {
        let mut made = KeyFile { keys: BTreeMap::new() };
        made.add()?;
        Ok(made)
    }

    /// The file of this folder, if there is one.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(Self::path(folder)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let keys = match <[u8; KEY_LEN]>::try_from(&bytes[..]) {
            Ok(alone) => Some(BTreeMap::from([(FIRST, alone)])),
            Err(_) => std::str::from_utf8(&bytes).ok().and_then(parse),
        };
        let wrong = || {
            io::Error::new(io::ErrorKind::InvalidData, "`secret.key` is no key; restore it from the backup")
        };
        keys.filter(|keys| !keys.is_empty()).map(|keys| Some(KeyFile { keys })).ok_or_else(wrong)
    }

    /// Another key, which seals from now on. Its number.
    pub(super) fn add(&mut self) -> io::Result<u32> {
        let mut key = [0; KEY_LEN];
        SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("no randomness to be had"))?;
        let number = self.newest().map_or(FIRST, |(newest, _)| newest + 1);
        self.keys.insert(number, key);
        Ok(number)
    }

    /// Without all but the newest.
    pub(super) fn newest_only(&self) -> Self {
        KeyFile { keys: self.newest().into_iter().collect() }
    }

    /// The keys of both.
    pub(crate) fn merged(mut self, other: Option<KeyFile>) -> Self {
        self.keys.extend(other.into_iter().flat_map(|other| other.keys));
        self
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = (u32, &[u8; KEY_LEN])> {
        self.keys.iter().map(|(number, key)| (*number, key))
    }

    fn newest(&self) -> Option<(u32, [u8; KEY_LEN])> {
        self.keys.last_key_value().map(|(number, key)| (*number, *key))
    }

    /// Writes a file that only its owner can read, whole or not at all: it gets its name when it is on the disk. Whoever dies
    /// before leaves what was there, and whoever dies after has the keys to all that is sealed from then on.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let path = Self::path(folder);
        let unfinished = path.with_extension("key.new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&unfinished)?;
        let mut text = format!("{HEAD}\n");
        for (number, key) in self.keys() {
            text.push_str(&format!("{number} {}\n", hex(key)));
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        // The name is part of the folder.
        #[cfg(unix)]
        fs::File::open(folder)?.sync_all()?;
        Ok(())
    }
}

fn parse(text: &str) -> Option<BTreeMap<u32, [u8; KEY_LEN]>> {
    let (head, keys) = text.strip_suffix('\n')?.split_once('\n')?;
    let key = |line: &str| {
        let (number, digits) = line.split_once(' ')?;
        Some((number.parse().ok()?, bytes_of_hex(digits)?.try_into().ok()?))
    };
    (head == HEAD).then(|| keys.lines().map(key).collect())?
}
