//! Java's properties to a tree.
//!
//! `key=value`, `key: value` or `key value` in a line; `#` and `!` begin a comment; a backslash at the end goes on in the next
//! line, and elsewhere escapes. Keys are paths: dots separate sections, `[quoted.key]` is one key with dots in it, and
//! `key[0]` an item of a list. A comment `#---` begins the next document, as it does in Spring.

use std::collections::BTreeMap;

use super::tree::{Content, DEPTH_MAX, Entry, NODES_MAX, Node, join, shortened};
use super::{Place, Problem, yaml};

pub(super) fn read(file: &Place, text: &str) -> Result<Vec<Node>, Vec<Problem>> {
    let (mut documents, mut problems) = (vec![Section::default()], Vec::new());
    let (mut lines, mut nodes) = (text.lines().enumerate(), 0_usize);
    while let Some((index, line)) = lines.next() {
        let begin = line.trim_start_matches(SPACES);
        let number = u32::try_from(documents.len() - 1).unwrap_or(u32::MAX);
        let place = file.in_document(number).at(index + 1, line.chars().count() - begin.chars().count() + 1);
        if begin.starts_with(['#', '!']) {
            if begin[1..].trim_end() == "---" {
                documents.push(Section::default());
            }
            continue;
        }
        let mut logical = begin.to_owned();
        while ends_open(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(SPACES));
        }
        if logical.is_empty() {
            continue;
        }
        let (key, value) = halves(&logical);
        let parts = match (unescaped(key), unescaped(value)) {
            (Ok(key), Ok(value)) => parts_of(&key).map(|parts| (parts, value)),
            (Err(wrong), _) | (_, Err(wrong)) => Err(wrong),
        };
        nodes += parts.as_ref().map_or(0, |(parts, _)| parts.len());
        let put = parts.and_then(|(parts, value)| {
            let document = documents.last_mut().expect("there is always a document");
            document.put(&parts, "", &value, &place)
        });
        if let Err((path, reason)) = put {
            let problem = Problem::new(&place, path, reason);
            problems.push(problem.with_remedy("write `key=value`, with each key once"));
        }
        if nodes > NODES_MAX || documents.len() > yaml::DOCUMENTS_MAX as usize {
            let problem = Problem::new(&place, "", "the file is too large");
            return Err(vec![problem.with_remedy("a configuration is smaller than that")]);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let trees = documents.into_iter().enumerate();
    Ok(trees
        .map(|(number, section)| {
            let document = file.in_document(u32::try_from(number).unwrap_or(u32::MAX));
            section.into_node(document.at(1, 1))
        })
        .collect())
}

/// What separates words; a line feed ends a line.
const SPACES: [char; 3] = [' ', '\t', '\u{c}'];

/// What is wrong, and with which key.
type Refused = (String, String);

/// Whether the line goes on: it ends with a backslash that nothing escapes.
fn ends_open(line: &str) -> bool {
    line.len() % 2 != line.trim_end_matches('\\').len() % 2
}

/// Key and value as they are written.
fn halves(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let ends = !escaped && (SPACES.contains(c) || matches!(c, '=' | ':'));
        escaped = !escaped && *c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.map_or(line.len(), |(at, _)| at));
    let rest = rest.trim_start_matches(SPACES);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(SPACES))
}

fn unescaped(text: &str) -> Result<String, Refused> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('t')) => '\t',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some('u')) => {
                let digits: String = chars.by_ref().take(4).collect();
                // Half of a pair has no letter of its own.
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                let Some(c) = code.and_then(char::from_u32) else {
                    return Err((String::new(), format!("`\\u{}` is no letter", shortened(&digits))));
                };
                c
            }
            ('\\', Some(c)) | (c, _) => c,
        };
        out.push(c);
    }
    Ok(out)
}

enum Part {
    Key(String),
    Index(usize),
}

/// `a.b[0].[c.d]` as its parts.
fn parts_of(key: &str) -> Result<Vec<Part>, Refused> {
    let wrong = |reason: &str| (String::new(), format!("`{}` {reason}", shortened(key)));
    let (mut parts, mut rest) = (Vec::new(), key);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (name, after) = inner.split_once(']').ok_or_else(|| wrong("has a `[` without a `]`"))?;
            parts.push(match name.parse() {
                Ok(index) if !parts.is_empty() => Part::Index(index),
                _ => Part::Key(name.to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 {
            return Err(wrong("has an empty name in it"));
        }
        parts.push(Part::Key(rest[..end].to_owned()));
        let after = &rest[end..];
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    let long = parts.len() >= DEPTH_MAX;
    if parts.is_empty() {
        Err(wrong("is no key"))
    } else if long {
        Err(wrong("is nested too deep"))
    } else {
        Ok(parts)
    }
}

/// A tree that grows.
#[derive(Default)]
enum Section {
    #[default]
    Empty,
    Value(String, Place),
    List(BTreeMap<usize, Section>),
    /// In the order of the file.
    Map(Vec<(String, Place, Section)>, BTreeMap<String, usize>),
}

impl Section {
    fn put(&mut self, parts: &[Part], path: &str, value: &str, place: &Place) -> Result<(), Refused> {
        let clash = |what: &str| Err((path.to_owned(), format!("it is {what} already")));
        if matches!(self, Section::Empty) {
            *self = match parts.first() {
                None => Section::Value(value.to_owned(), place.clone()),
                Some(Part::Index(_)) => Section::List(BTreeMap::new()),
                Some(Part::Key(_)) => Section::Map(Vec::new(), BTreeMap::new()),
            };
            if parts.is_empty() {
                return Ok(());
            }
        }
        match (self, parts) {
            (Section::Value(_, first), []) => {
                clash(&format!("set on line {}", first.line().unwrap_or_default()))
            }
            (Section::Value(..), _) => clash("a value"),
            (Section::List(items), [Part::Index(index), rest @ ..]) => {
                items.entry(*index).or_default().put(rest, &format!("{path}[{index}]"), value, place)
            }
            (Section::Map(entries, index), [Part::Key(key), rest @ ..]) => {
                let at = *index.entry(key.clone()).or_insert_with(|| {
                    entries.push((key.clone(), place.clone(), Section::Empty));
                    entries.len() - 1
                });
                entries[at].2.put(rest, &join(path, key), value, place)
            }
            (Section::List(_), _) => clash("a list"),
            (Section::Map(..) | Section::Empty, _) => clash("a section"),
        }
    }

    fn into_node(self, place: Place) -> Node {
        match self {
            Section::Empty => Node { place, content: Content::Map(Vec::new()) },
            // What is written is text, as it is in an environment; nothing at all is nothing.
            Section::Value(text, place) if text.is_empty() => Node::plain(place, text),
            Section::Value(text, place) => Node::quoted(place, text),
            Section::List(items) => {
                let items = items.into_values().map(|item| item.into_node(place.clone()));
                Node { content: Content::List(items.collect()), place }
            }
            Section::Map(entries, _) => {
                let entries = entries.into_iter().map(|(key, place, section)| Entry {
                    key,
                    value: section.into_node(place.clone()),
                    place,
                });
                Node { place, content: Content::Map(entries.collect()) }
            }
        }
    }
}
