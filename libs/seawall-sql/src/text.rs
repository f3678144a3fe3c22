//! Texts as both databases can hold them.

use std::borrow::Cow;

/// The most bytes of an error's text that are kept: enough for its causes, and not a whole page that a peer answered with.
pub(crate) const ERROR_BYTES_MAX: usize = 16 * 1_024;

/// The text without the character that PostgreSQL's texts can't hold. Nothing must be lost for it.
pub(crate) fn clean_text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The text of an error: cleaned, and no longer than [`ERROR_BYTES_MAX`]. An outcome is recorded whatever its error says.
pub(crate) fn error_text(text: &str) -> Cow<'_, str> {
    let kept = &text[..text.floor_char_boundary(ERROR_BYTES_MAX)];
    match (kept.contains('\0'), kept.len() < text.len()) {
        (false, false) => Cow::Borrowed(text),
        (_, false) => Cow::Owned(clean_text(kept)),
        (_, true) => Cow::Owned(clean_text(kept) + "…"),
    }
}

/// A name that is part of an index, whose entries have a size limit: cleaned, and if it is longer than this many bytes, its
/// beginning and a hash of all of it, so that two long names stay two.
pub(crate) fn short_name(name: &str, bytes_max: usize) -> String {
    const HASH: usize = 17;
    let name = clean_text(name);
    if name.len() <= bytes_max {
        return name;
    }
    let start = &name[..name.floor_char_boundary(bytes_max.saturating_sub(HASH))];
    format!("{start}~{:016x}", hash(&name))
}

/// FNV-1a: the same in every version and on every machine.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_and_bounded() {
        assert_eq!(error_text("no broker"), "no broker");
        assert_eq!(error_text("no\0 broker"), "no\u{fffd} broker");
        let long = error_text(&"é\0".repeat(ERROR_BYTES_MAX)).into_owned();
        assert!(long.len() < 2 * ERROR_BYTES_MAX && long.ends_with('…') && !long.contains('\0'));
    }

    #[test]
    fn long_names_stay_apart_and_the_same() {
        let names = ["a".repeat(3_000) + "1", "a".repeat(3_000) + "2"].map(|name| short_name(&name, 100));
        assert_eq!(names[0].len(), 100);
        assert_ne!(names[0], names[1]);
        assert_eq!(short_name(&names[0], 100), names[0], "a short name is its own");
        assert!(short_name(&"日".repeat(100), 100).len() <= 100);
    }
}
