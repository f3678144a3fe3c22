//! How an entry of the remote cache is written into Redis.

use seawall::task::cache::RemoteEntry;

/// The value that stands for "does not exist" in [`EntryFormat::Plain`], as services in other languages write it.
pub const EMPTY_MARKER: &str = "__EMPTY__";

/// How an entry of a [`RedisRemoteCache`](super::RedisRemoteCache) is written into Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum EntryFormat {
    /// One byte for the kind, eight for the version, then the encoded value.
    #[default]
    Versioned,
    /// The encoded value alone, and [`EMPTY_MARKER`] for "does not exist", so that services in other languages share the keys.
    /// There is no room for a version: a caller that asks for one always loads.
    Plain,
}

impl EntryFormat {
    /// Encodes an entry. Returns `None` for a value that would be read as the empty marker.
    pub(super) fn encode(self, entry: &RemoteEntry) -> Option<Vec<u8>> {
        match (self, &entry.value) {
            (EntryFormat::Versioned, _) => Some(entry.to_bytes()),
            (EntryFormat::Plain, None) => Some(EMPTY_MARKER.as_bytes().to_vec()),
            (EntryFormat::Plain, Some(value)) => (value != EMPTY_MARKER.as_bytes()).then(|| value.clone()),
        }
    }

    /// Decodes an entry. Returns `None` for bytes that are not one.
    pub(super) fn decode(self, bytes: Vec<u8>) -> Option<RemoteEntry> {
        match self {
            EntryFormat::Versioned => RemoteEntry::from_bytes(&bytes),
            EntryFormat::Plain if bytes == EMPTY_MARKER.as_bytes() => Some(RemoteEntry::new(None, 0)),
            EntryFormat::Plain => Some(RemoteEntry::new(Some(bytes), 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSK-2: what does not exist is told from what is not cached, in each format.
    #[test]
    fn tsk_2_entries_come_back_as_they_were_written() {
        for format in [EntryFormat::Versioned, EntryFormat::Plain] {
            for value in [None, Some(Vec::new()), Some(b"{\"a\":1}".to_vec())] {
                let entry = RemoteEntry::new(value, 0);
                assert_eq!(format.decode(format.encode(&entry).unwrap()), Some(entry), "{format:?}");
            }
        }
        let entry = RemoteEntry::new(Some(b"x".to_vec()), u64::MAX - 1);
        let bytes = EntryFormat::Versioned.encode(&entry).unwrap();
        assert_eq!(EntryFormat::Versioned.decode(bytes), Some(entry));
    }

    /// TSK-2: a value that looks like the marker is not stored, because it would be read as "does not exist".
    #[test]
    fn tsk_2_a_value_that_looks_like_the_marker_is_not_written() {
        let entry = RemoteEntry::new(Some(EMPTY_MARKER.as_bytes().to_vec()), 0);
        assert_eq!(EntryFormat::Plain.encode(&entry), None);
        assert!(EntryFormat::Versioned.encode(&entry).is_some());
    }
}
