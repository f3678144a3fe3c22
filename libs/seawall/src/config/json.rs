//! JSON to a tree: RFC 8259 and nothing else.
//!
//! Why our own: it is this small, and the readers that exist either forget where things stood or bring a framework along.

use super::tree::{Content, DEPTH_MAX, Entry, Lines, NODES_MAX, Node};
use super::{Place, Problem};

pub(super) fn read(file: &Place, text: &str) -> Result<Node, Problem> {
    let mut reader = Reader { lines: Lines::new(file, text), text, at: 0, depth: 0, nodes: 0 };
    reader.space();
    let node = reader.value()?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.wrong("the document ended before this", "take the rest out")),
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    text: &'a str,
    /// In bytes, always between two characters.
    at: usize,
    depth: usize,
    nodes: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, Problem> {
        self.nodes += 1;
        if self.nodes > NODES_MAX || self.depth > DEPTH_MAX {
            return Err(self
                .wrong("the file is too large or nested too deep", "a configuration is smaller than that"));
        }
        let place = self.lines.at(self.at);
        match self.peek() {
            Some('{') => Ok(Node { place, content: self.map()? }),
            Some('[') => Ok(Node { place, content: self.list()? }),
            Some('"') => Ok(Node::quoted(place, self.string()?)),
            Some('-' | '0'..='9') => Ok(Node::plain(place, self.number()?)),
            Some('a'..='z') => self.word().map(|word| Node::plain(place, word)),
            Some('\'') => Err(self.wrong("text stands in double quotes", "write `\"…\"`")),
            Some('}' | ']') => {
                Err(self.wrong("a value is missing here", "write it, or take out the comma before"))
            }
            Some(_) => Err(self.wrong("no value begins like this", "text stands in double quotes")),
            None => Err(self.wrong("the file ends where a value should stand", "is it complete?")),
        }
    }

    fn map(&mut self) -> Result<Content, Problem> {
        let mut entries = Vec::new();
        self.items('}', |reader| {
            if reader.peek() == Some('}') {
                return Err(reader.wrong("nothing follows the last comma", "take the comma out"));
            }
            if reader.peek() != Some('"') {
                return Err(
                    reader.wrong("a key in double quotes should stand here", "write `\"key\": value`")
                );
            }
            let place = reader.lines.at(reader.at);
            let key = reader.string()?;
            reader.space();
            if !reader.eat(':') {
                return Err(reader.wrong("a `:` is missing after the key", "write `\"key\": value`"));
            }
            reader.space();
            entries.push(Entry { key, place, value: reader.value()? });
            Ok(())
        })?;
        Ok(Content::Map(entries))
    }

    fn list(&mut self) -> Result<Content, Problem> {
        let mut items = Vec::new();
        self.items(']', |reader| {
            items.push(reader.value()?);
            Ok(())
        })?;
        Ok(Content::List(items))
    }

    /// What stands between brackets, separated by commas.
    fn items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.depth += 1;
        self.at += 1;
        self.space();
        if !self.eat(close) {
            loop {
                item(self)?;
                self.space();
                if self.eat(close) {
                    break;
                }
                if !self.eat(',') {
                    let reason = format!("a `,` or the closing `{close}` is missing here");
                    return Err(self.wrong(reason, "look at the end of the line before, too"));
                }
                self.space();
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, Problem> {
        let begin = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.next().filter(|c| *c != '\n') else {
                self.at = begin;
                return Err(self.wrong("this text has no closing quote on its line", "close it with `\"`"));
            };
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                '\0'..='\x1f' => return Err(self.wrong("a control character", "write it as `\\u00…`")),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Problem> {
        let c = match self.next() {
            Some(c @ ('"' | '\\' | '/')) => Some(c),
            Some('b') => Some('\x08'),
            Some('f') => Some('\x0c'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('u') => self.unit().and_then(|unit| match unit {
                // The first half of a pair; the second must follow.
                0xD800..=0xDBFF if self.eat('\\') && self.eat('u') => {
                    let low = self.unit().filter(|low| (0xDC00..=0xDFFF).contains(low))?;
                    char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
                }
                unit => char::from_u32(unit),
            }),
            _ => None,
        };
        c.ok_or_else(|| self.wrong("no such escape", "write a backslash as `\\\\`"))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let unit =
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?;
        self.at += 4;
        unit
    }

    fn number(&mut self) -> Result<String, Problem> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')) {
            self.at += 1;
        }
        let text = &self.text[begin..self.at];
        let digits = text.trim_start_matches('-');
        let leading = digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
        let known = digits.chars().all(|c| matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
        if text.parse::<f64>().is_err()
            || leading
            || !known
            || digits.starts_with('.')
            || digits.ends_with('.')
        {
            self.at = begin;
            return Err(self.wrong(
                format!("`{}` is not a number", super::tree::shortened(text)),
                "text and durations stand in double quotes: `\"30s\"`",
            ));
        }
        Ok(text.to_owned())
    }

    fn word(&mut self) -> Result<String, Problem> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        match &rest[..length] {
            word @ ("true" | "false" | "null") => {
                self.at += length;
                Ok(word.to_owned())
            }
            word => Err(self.wrong(
                format!("`{}` stands without quotes", super::tree::shortened(word)),
                "text stands in double quotes",
            )),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn wrong(&mut self, reason: impl Into<String>, remedy: &str) -> Problem {
        let place = self.lines.at(self.at);
        if matches!(self.peek(), Some('/' | '#')) {
            let problem = Problem::new(&place, "", "this is not JSON: it has no comments");
            return problem.with_remedy("take it out, or write YAML");
        }
        Problem::new(&place, "", format!("this is not JSON: {}", reason.into())).with_remedy(remedy)
    }
}
