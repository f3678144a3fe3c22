//! A text that may be written in several ways, found in another.

/// A part of a secret that is shorter would be found everywhere.
pub(super) const SECRET_PART_MIN: usize = 6;

/// In which ways a text may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spelling {
    /// As it is, and as JSON, addresses and HTML have it, mixed as it may be.
    Text,
    /// The same, for base 64 in either alphabet.
    Base64,
    /// The same, for hexadecimal digits, large or small.
    Hex,
}

impl Spelling {
    /// Returns the number of bytes that must be there at the end of a text that was cut off.
    pub(super) fn least(self) -> usize {
        match self {
            Spelling::Text => SECRET_PART_MIN,
            Spelling::Base64 => 8,
            Spelling::Hex => 12,
        }
    }
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpellingMatch {
    /// How many bytes of the text it takes.
    pub(super) length: usize,
    /// How many bytes of what was looked for there are.
    pub(super) matched: usize,
    /// True if all of it is there, and false if the text ends before.
    pub(super) is_whole: bool,
}

/// Whether the text begins with this, in any spelling; or with its beginning, if the text ends there.
pub(super) fn spelled(text: &[u8], needle: &[u8], spelling: Spelling) -> Option<SpellingMatch> {
    let (mut at, mut matched) = (0, 0);
    while matched < needle.len() {
        let (rest, wanted) = (&text[at..], &needle[matched..]);
        if rest.is_empty() {
            return (matched > 0).then_some(SpellingMatch { length: at, matched, is_whole: false });
        }
        // Nearly always nothing fits, and the first look says so.
        let is_same = same(rest[0], wanted[0], spelling);
        let (taken, bytes) = match (is_same, encoded(rest, wanted, spelling)) {
            (false, None) => return None,
            (true, None) => (1, 1),
            (false, Some(step)) => step,
            // `%25` is a percent sign, unless it is a percent sign and a number: whichever leads further.
            (true, Some((taken, bytes))) => match spelled(&rest[taken..], &wanted[bytes..], spelling) {
                Some(found) => {
                    let (length, matched) = (at + taken + found.length, matched + bytes + found.matched);
                    return Some(SpellingMatch { length, matched, is_whole: found.is_whole });
                }
                None if rest.len() == taken => (taken, bytes),
                None => (1, 1),
            },
        };
        at += taken;
        matched += bytes;
    }
    Some(SpellingMatch { length: at, matched, is_whole: true })
}

/// How many bytes of the text stand for how many of what is wanted, if they are not simply the same.
fn encoded(text: &[u8], wanted: &[u8], spelling: Spelling) -> Option<(usize, usize)> {
    match text[0] {
        b'\\' if wanted[0] == b'\\' => Some(slashes(text, wanted)),
        b'\\' => escape(text, wanted, spelling),
        b'%' => percent(text, wanted),
        b'&' => entity(text, wanted),
        b'+' if wanted[0] == b' ' => Some((1, 1)),
        _ => None,
    }
}

fn same(found: u8, wanted: u8, spelling: Spelling) -> bool {
    match spelling {
        Spelling::Text => found == wanted,
        Spelling::Hex => found.eq_ignore_ascii_case(&wanted),
        Spelling::Base64 => match wanted {
            b'+' => matches!(found, b'+' | b'-'),
            b'/' => matches!(found, b'/' | b'_'),
            wanted => found == wanted,
        },
    }
}

/// As many backslashes as there are stand for as many as are wanted: each level of JSON doubles them.
fn slashes(text: &[u8], wanted: &[u8]) -> (usize, usize) {
    let count = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte == b'\\').count();
    let (there, needed) = (count(text), count(wanted));
    // The last of them may belong to what follows, such as a quote.
    let next = (text.get(there), wanted.get(needed));
    let own = match next {
        (Some(found), Some(wanted)) if found == wanted => there,
        _ => there.saturating_sub(1).max(needed.min(there)),
    };
    (own, needed.min(there))
}

/// Reads a percent-encoded byte like `%2F`.
fn percent(text: &[u8], wanted: &[u8]) -> Option<(usize, usize)> {
    let byte = u8::try_from(number(text.get(1..3)?, 16)?).ok()?;
    (byte == wanted[0]).then_some((3, 1))
}

/// `\"`, `\n`, `\u00e9`, `\ud83d\udd11`; after any number of backslashes, as JSON within JSON has them.
fn escape(text: &[u8], wanted: &[u8], spelling: Spelling) -> Option<(usize, usize)> {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    let letter = *text.get(slashes)?;
    if letter == b'u' {
        let unit = |at: usize| number(text.get(at..at + 4)?, 16);
        let (first, end) = (unit(slashes + 1)?, slashes + 5);
        let pair = || {
            let between = text.get(end..)?.iter().take_while(|byte| **byte == b'\\').count();
            let low = unit(end + between + 1).filter(|_| text.get(end + between) == Some(&b'u'))?;
            (0xDC00..0xE000).contains(&low).then_some((low, end + between + 5))
        };
        if (0xD800..0xDC00).contains(&first) {
            let (low, end) = pair()?;
            return character(0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00), end, wanted);
        }
        return character(first, end, wanted);
    }
    let meant = match letter {
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        letter if letter.is_ascii_punctuation() => letter,
        _ => return None,
    };
    same(meant, wanted[0], spelling).then_some((slashes + 1, 1))
}

/// `&amp;`, `&#38;`, `&#x26;`.
fn entity(text: &[u8], wanted: &[u8]) -> Option<(usize, usize)> {
    const NAMES: [(&[u8], u8); 5] =
        [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = &text[1..end];
    if let Some((_, byte)) = NAMES.iter().find(|(known, _)| *known == name) {
        return (*byte == wanted[0]).then_some((end + 1, 1));
    }
    let code = name.strip_prefix(b"#")?;
    let code = match code.strip_prefix(b"x").or_else(|| code.strip_prefix(b"X")) {
        Some(digits) => number(digits, 16)?,
        None => number(code, 10)?,
    };
    character(code, end + 1, wanted)
}

/// A character takes as many bytes of what is wanted as it has in UTF-8.
fn character(code: u32, length: usize, wanted: &[u8]) -> Option<(usize, usize)> {
    let mut room = [0; 4];
    let bytes = char::from_u32(code)?.encode_utf8(&mut room).as_bytes();
    wanted.starts_with(bytes).then_some((length, bytes.len()))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.is_empty() && !text.starts_with('+'))?;
    u32::from_str_radix(text, radix).ok()
}
