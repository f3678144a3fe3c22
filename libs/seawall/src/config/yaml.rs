//! YAML to a tree.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::dialect::spring;
use super::tree::{Content, DEPTH_MAX, Entry, NODES_MAX, Node};
use super::value::Wrong;
use super::{Place, Problem};

/// A file has fewer documents than this.
pub(super) const DOCUMENTS_MAX: u32 = 1_000;

/// Reads the documents of a text. An empty text is an empty map. In an application's own file there may be tags and merges,
/// as long as they are not in a guard.
pub(super) fn read(file: &Place, text: &str, own_file: bool) -> Result<Vec<Node>, Problem> {
    let mut growing = Growing {
        file: file.clone(),
        own_file,
        nodes: 0,
        open: Vec::new(),
        anchors: HashMap::new(),
        roots: Vec::new(),
        begins: Vec::new(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let reason = format!("this is not YAML: {}", error.info());
            Problem::new(&place(file, *error.marker()), "", reason)
                .with_remedy("look at this line and the one above it, mostly at their indentation")
        })?;
        growing.take(event, span)?;
    }
    let Growing { mut roots, begins, .. } = growing;
    // Several documents are a custom of Spring; elsewhere `---` is a slip.
    if let (Some(second), false) = (begins.get(1), own_file || spring::is_spring(&roots)) {
        let problem = Problem::new(second, "", "a second document begins here");
        return Err(problem.with_remedy("write one document, without `---` in the middle"));
    }
    if roots.is_empty() {
        roots.push(Node { place: file.at(1, 1), content: Content::Map(Vec::new()) });
    }
    Ok(roots)
}

fn place(file: &Place, marker: Marker) -> Place {
    file.at(marker.line(), marker.col() + 1)
}

/// A tree whose lists and maps are not all closed yet.
struct Growing {
    /// The document that is being read.
    file: Place,
    own_file: bool,
    nodes: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    roots: Vec<Node>,
    /// Where each document begins.
    begins: Vec<Place>,
}

struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, Place)>,
}

impl Growing {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let place = place(&self.file, span.start);
        match event {
            Event::DocumentStart(_) => self.begin_document(place),
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag))
                if !self.own_file =>
            {
                let handle = if tag.is_yaml_core_schema() { "!!" } else { &tag.handle };
                let reason = format!("tags like `{handle}{}` are not read", tag.suffix);
                let problem = Problem::new(&place, "", reason);
                Err(problem.with_remedy("take it out; what a value is follows from its key"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let quoted = style != ScalarStyle::Plain;
                let content = Content::Scalar { text: text.into_owned(), quoted };
                self.put(Node { place, content }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(place, Content::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(place, Content::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.put(open.node, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.put_alias(node, &place),
                // An alias inside of what it names.
                None => {
                    Err(Problem::new(&place, "", "this alias contains itself").with_remedy("write it out"))
                }
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin_document(&mut self, place: Place) -> Result<(), Problem> {
        let number = u32::try_from(self.begins.len()).unwrap_or(u32::MAX);
        if number >= DOCUMENTS_MAX {
            let problem = Problem::new(&place, "", format!("there are more than {DOCUMENTS_MAX} documents"));
            return Err(problem.with_remedy("a configuration is smaller than that"));
        }
        if number > 0 {
            self.file = self.file.in_document(1);
        }
        // An anchor holds for its own document.
        self.anchors.clear();
        self.begins.push(place);
        Ok(())
    }

    fn begin(&mut self, place: Place, content: Content, anchor: usize) -> Result<(), Problem> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_much(&place, "nested", DEPTH_MAX));
        }
        self.open.push(Open { node: Node { place, content }, anchor, key: None });
        Ok(())
    }

    fn put_alias(&mut self, node: Node, place: &Place) -> Result<(), Problem> {
        let (nodes, depth) = node.size();
        self.nodes = self.nodes.saturating_add(nodes);
        if self.open.len() + depth > DEPTH_MAX {
            return Err(too_much(place, "nested", DEPTH_MAX));
        }
        self.put(node, 0)
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(too_much(&node.place, "values", NODES_MAX));
        }
        if anchor > 0 {
            // The copy costs as much as what it is a copy of.
            self.nodes = self.nodes.saturating_add(node.size().0);
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.roots.push(node);
            return Ok(());
        };
        match (&mut open.node.content, open.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some((key, place))) => entries.push(Entry { key, place, value: node }),
            (Content::Map(_), None) => open.key = Some(key_of(node, self.own_file)?),
            (Content::Scalar { .. }, _) => {}
        }
        Ok(())
    }
}

fn key_of(node: Node, own_file: bool) -> Result<(String, Place), Problem> {
    match node.content {
        Content::Scalar { text, quoted: false } if text == "<<" && !own_file => {
            let Wrong { reason, remedy } = no_merging();
            Err(Problem::new(&node.place, "", reason).with_remedy(remedy))
        }
        Content::Scalar { text, .. } => Ok((text, node.place)),
        Content::List(_) | Content::Map(_) => {
            let problem = Problem::new(&node.place, "", "a key is a word, not a list or a section");
            Err(problem.with_remedy("write `key: value`"))
        }
    }
}

/// What to say about `<<`.
pub(super) fn no_merging() -> Wrong {
    Wrong::new("merging with `<<` is not read", "name the section under `configs` and write `extends`")
}

fn too_much(place: &Place, what: &str, max: usize) -> Problem {
    let reason = match what {
        "nested" => format!("sections lie more than {max} deep here"),
        _ => format!("the file has more than {max} values, its aliases written out"),
    };
    Problem::new(place, "", reason).with_remedy("a configuration is smaller than that")
}
