//! What was read, before anybody knows what it means: scalars, lists and maps, each with its place.
//!
//! A scalar is text. Whether `no` is a word, a switch or the name of a guard is for the table of settings to say and not
//! for the format, so Norway stays a country.

use std::collections::HashMap;

use super::{Place, Problem};

/// A larger file is not a configuration.
pub(super) const TEXT_MAX: usize = 1 << 20;
/// More values than this, aliases written out, are an attack or a mistake.
pub(super) const NODES_MAX: usize = 100_000;
/// The schema needs seven levels.
pub(super) const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Scalar { text: String, quoted: bool },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn plain(place: Place, text: impl Into<String>) -> Self {
        Node { place, content: Content::Scalar { text: text.into(), quoted: false } }
    }

    pub(super) fn quoted(place: Place, text: impl Into<String>) -> Self {
        Node { place, content: Content::Scalar { text: text.into(), quoted: true } }
    }

    /// Nothing was written, or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, quoted: false } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// The text of a scalar that is there.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } if !self.is_null() => Some(text.trim()),
            _ => None,
        }
    }

    /// What stands below this path. The path is one of sections, joined by dots; a key may have dots in it as well.
    pub(super) fn below(self, path: &str) -> Option<Node> {
        if path.is_empty() {
            return Some(self);
        }
        let Content::Map(entries) = self.content else { return None };
        entries.into_iter().find_map(|entry| {
            let rest = path.strip_prefix(&entry.key)?;
            entry.value.below(if rest.is_empty() { rest } else { rest.strip_prefix('.')? })
        })
    }

    /// What it is, for a user who wrote something else.
    pub(super) fn noun(&self) -> String {
        match &self.content {
            Content::Scalar { .. } if self.is_null() => "nothing".into(),
            Content::Scalar { text, .. } => format!("`{}`", shortened(text)),
            Content::List(_) => "a list".into(),
            Content::Map(_) => "a section".into(),
        }
    }

    /// How many nodes it has, and how deep they lie.
    pub(super) fn size(&self) -> (usize, usize) {
        let over = |sizes: &mut dyn Iterator<Item = (usize, usize)>| {
            sizes.fold((1, 1), |(nodes, depth), (more, deep)| (nodes + more, depth.max(deep + 1)))
        };
        match &self.content {
            Content::Scalar { .. } => (1, 1),
            Content::List(items) => over(&mut items.iter().map(Node::size)),
            Content::Map(entries) => over(&mut entries.iter().map(|entry| entry.value.size())),
        }
    }
}

/// As much of a text as fits into a sentence, without what would move the cursor of whoever reads it.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 40;
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == MAX {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

/// A key that stands twice in one section: one of the two would be lost, and nobody knows which was meant.
pub(super) fn find_duplicates(node: &Node, path: &str, problems: &mut Vec<Problem>) {
    let items: &[Node] = if let Content::List(items) = &node.content { items } else { &[] };
    for (index, item) in items.iter().enumerate() {
        find_duplicates(item, &format!("{path}[{index}]"), problems);
    }
    let Content::Map(entries) = &node.content else { return };
    let mut seen: HashMap<&str, &Place> = HashMap::new();
    for entry in entries {
        let path = join(path, &entry.key);
        if let Some(first) = seen.get(entry.key.as_str()) {
            let line = first.line().unwrap_or_default();
            let problem = Problem::new(
                &entry.place,
                path.clone(),
                format!("this key stands here twice, first on line {line}"),
            );
            problems.push(problem.with_remedy("take one of them out"));
        }
        seen.insert(&entry.key, &entry.place);
        find_duplicates(&entry.value, &path, problems);
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    // A path of ours is never shortened; what somebody wrote in the place of a key may be anything.
    let known = key.len() <= 100 && !key.contains(char::is_control);
    let key = if known { key.into() } else { shortened(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Places in a text by their offset in bytes.
pub(super) struct Lines<'a> {
    file: &'a Place,
    text: &'a str,
    /// Where each line begins.
    begins: Vec<usize>,
    /// The last answer: offset, line and column. Places are asked for nearly in order, and counting a long line from
    /// its beginning each time would take for ever.
    last: (usize, usize, usize),
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a Place, text: &'a str) -> Self {
        let begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { file, text, begins, last: (0, 1, 1) }
    }

    pub(super) fn at(&mut self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.begins.partition_point(|begin| *begin <= offset);
        if line != self.last.1 || offset < self.last.0 {
            self.last = (self.begins[line - 1], line, 1);
        }
        let column = self.last.2 + self.text[self.last.0..offset].chars().count();
        self.last = (offset, line, column);
        self.file.at(line, column)
    }
}
