//! YAML to a tree.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::tree::{Content, DEPTH_MAX, Entry, NODES_MAX, Node};
use super::{Place, Problem};

/// Reads one document. An empty one is an empty map.
pub(super) fn read(file: &Place, text: &str) -> Result<Node, Problem> {
    let mut growing = Growing { file, nodes: 0, open: Vec::new(), anchors: HashMap::new(), root: None };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let reason = format!("this is not YAML: {}", error.info());
            Problem::new(&place(file, *error.marker()), "", reason)
                .with_remedy("look at this line and the one above it, mostly at their indentation")
        })?;
        growing.take(event, span)?;
    }
    Ok(growing.root.unwrap_or_else(|| Node { place: file.at(1, 1), content: Content::Map(Vec::new()) }))
}

fn place(file: &Place, marker: Marker) -> Place {
    file.at(marker.line(), marker.col() + 1)
}

/// A tree whose lists and maps are not all closed yet.
struct Growing<'a> {
    file: &'a Place,
    nodes: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
}

struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, Place)>,
}

impl Growing<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let place = place(self.file, span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                let problem = Problem::new(&place, "", "a second document begins here");
                Err(problem.with_remedy("write one document, without `---` in the middle"))
            }
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag)) => {
                let handle = if tag.is_yaml_core_schema() { "!!" } else { &tag.handle };
                let reason = format!("tags like `{handle}{}` are not read", tag.suffix);
                let problem = Problem::new(&place, "", reason);
                Err(problem.with_remedy("take it out; what a value is follows from its key"))
            }
            Event::Scalar(text, style, anchor, None) => {
                let quoted = style != ScalarStyle::Plain;
                let content = Content::Scalar { text: text.into_owned(), quoted };
                self.put(Node { place, content }, anchor)
            }
            Event::SequenceStart(anchor, None) => self.begin(place, Content::List(Vec::new()), anchor),
            Event::MappingStart(anchor, None) => self.begin(place, Content::Map(Vec::new()), anchor),
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
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
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
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.content, open.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some((key, place))) => entries.push(Entry { key, place, value: node }),
            (Content::Map(_), None) => open.key = Some(key_of(node)?),
            (Content::Scalar { .. }, _) => {}
        }
        Ok(())
    }
}

fn key_of(node: Node) -> Result<(String, Place), Problem> {
    match node.content {
        Content::Scalar { text, quoted: false } if text == "<<" => {
            let problem = Problem::new(&node.place, "", "merging with `<<` is not read");
            Err(problem.with_remedy("name the section under `configs` and write `extends`"))
        }
        Content::Scalar { text, .. } => Ok((text, node.place)),
        Content::List(_) | Content::Map(_) => {
            let problem = Problem::new(&node.place, "", "a key is a word, not a list or a section");
            Err(problem.with_remedy("write `key: value`"))
        }
    }
}

fn too_much(place: &Place, what: &str, max: usize) -> Problem {
    let reason = match what {
        "nested" => format!("sections lie more than {max} deep here"),
        _ => format!("the file has more than {max} values, its aliases written out"),
    };
    Problem::new(place, "", reason).with_remedy("a configuration is smaller than that")
}
