//! Lines of a file; both the file and a line may be larger than memory.

use std::io::{self, BufRead};

/// A line, with its number.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) content: Content,
}

pub(super) enum Content {
    Text(String),
    /// Longer than an event may be; the line was skipped.
    TooLong,
    NotUtf8,
}

/// Reads lines and counts bytes.
pub(super) struct Lines<R> {
    reader: R,
    most: usize,
    number: u64,
    pub(super) bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Lines { reader, most, number: 0, bytes: 0 }
    }

    /// The next line that is not empty.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        while let Some((line, too_long)) = self.read()? {
            self.number += 1;
            let content = match String::from_utf8(line) {
                _ if too_long => Content::TooLong,
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => Content::Text(text.trim_start_matches('\u{feff}').trim().to_owned()),
                Err(_) => Content::NotUtf8,
            };
            return Ok(Some(Line { number: self.number, content }));
        }
        Ok(None)
    }

    /// Reads up to the next line break, but keeps at most `most` bytes. True if there were more.
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let (mut line, mut too_long, mut any) = (Vec::new(), false, false);
        loop {
            let found = match self.reader.fill_buf() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if found.is_empty() {
                return Ok(any.then_some((line, too_long)));
            }
            any = true;
            let end = found.iter().position(|byte| *byte == b'\n');
            let part = &found[..end.unwrap_or(found.len())];
            if line.len() + part.len() > self.most {
                too_long = true;
            } else {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.bytes += used as u64;
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some((line, too_long)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// HUB-10: lines of any length, with any line break, in bounded memory.
    #[test]
    fn hub_10_a_line_that_is_too_long_is_passed_over() {
        let text = b"\xef\xbb\xbf{\"a\":1}\r\n\n  \n0123456789\nab\xff\n{}";
        for capacity in [1, 3, 100] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, &text[..]), 12);
            let mut found = Vec::new();
            while let Some(Line { number, content }) = lines.next().unwrap() {
                let content = match content {
                    Content::Text(text) => text,
                    Content::TooLong => "(long)".into(),
                    Content::NotUtf8 => "(bytes)".into(),
                };
                found.push(format!("{number} {content}"));
            }
            assert_eq!(found, ["1 {\"a\":1}", "4 0123456789", "5 (bytes)", "6 {}"]);
            assert_eq!(lines.bytes, text.len() as u64);
            let mut lines = Lines::new(BufReader::with_capacity(capacity, &b"0123456789\n{}"[..]), 5);
            assert!(matches!(lines.next().unwrap().unwrap().content, Content::TooLong));
            assert!(matches!(lines.next().unwrap().unwrap().content, Content::Text(text) if text == "{}"));
        }
    }
}
