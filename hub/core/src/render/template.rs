//! JSON with expressions in it.

use serde_json::{Map, Value as Json};

use super::engine::Mistake;
use super::text::{Text, explain, json, too_large};
use super::{DEPTH_MAX, OUTPUT_BYTES_MAX, View};

/// A JSON value whose strings may hold expressions.
#[derive(Debug)]
pub struct Template(Node);

#[derive(Debug)]
enum Node {
    /// Without an expression in it.
    Fixed(Json),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Template {
    /// Compiles a template; every mistake in it at once.
    pub fn new(template: &Json, place: &str) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let node = Node::new(template, place, 0, &mut mistakes);
        if mistakes.is_empty() { Ok(Template(node)) } else { Err(mistakes) }
    }

    /// The value for this event.
    pub fn render(&self, view: &View, place: &str) -> Result<Json, Mistake> {
        let mut left = OUTPUT_BYTES_MAX;
        self.0.render(view, place, &mut left)
    }
}

impl Node {
    fn new(template: &Json, place: &str, depth: usize, mistakes: &mut Vec<Mistake>) -> Self {
        if depth > DEPTH_MAX {
            mistakes.push(Mistake::new(place, format!("it is nested deeper than {DEPTH_MAX}")));
            return Node::Fixed(Json::Null);
        }
        match template {
            Json::String(text) if ["{{", "}}", "{%", "{#"].iter().any(|mark| text.contains(mark)) => {
                match Text::new(text, place) {
                    Ok(text) => Node::Text(text),
                    Err(mistake) => {
                        mistakes.push(mistake);
                        Node::Fixed(Json::Null)
                    }
                }
            }
            Json::Array(items) => {
                let item = |(at, item)| Node::new(item, &format!("{place}[{at}]"), depth + 1, mistakes);
                Node::List(items.iter().enumerate().map(item).collect())
            }
            Json::Object(fields) => {
                let mut nodes = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    if name.contains("{{") {
                        mistakes.push(Mistake::new(&place, "the name of a field can't be an expression"));
                    }
                    nodes.push((name.clone(), Node::new(value, &place, depth + 1, mistakes)));
                }
                Node::Map(nodes)
            }
            fixed => Node::Fixed(fixed.clone()),
        }
    }

    fn render(&self, view: &View, place: &str, left: &mut usize) -> Result<Json, Mistake> {
        match self {
            Node::Fixed(fixed) => {
                spend(left, 8, place)?;
                Ok(fixed.clone())
            }
            Node::Text(text) => match text.whole() {
                Some(code) => {
                    let value = json(&code.eval(view).map_err(|gap| explain(gap, place))?, place)?;
                    spend(left, size_of(&value), place)?;
                    Ok(value)
                }
                None => {
                    let text = text.render(view, place, |value, out| out.push_str(value))?;
                    spend(left, text.len(), place)?;
                    Ok(Json::String(text))
                }
            },
            Node::List(items) => {
                let item = |(at, item): (usize, &Node)| item.render(view, &format!("{place}[{at}]"), left);
                items.iter().enumerate().map(item).collect()
            }
            Node::Map(fields) => {
                let mut map = Map::with_capacity(fields.len());
                for (name, node) in fields {
                    spend(left, name.len(), place)?;
                    map.insert(name.clone(), node.render(view, &format!("{place}.{name}"), left)?);
                }
                Ok(Json::Object(map))
            }
        }
    }
}

fn spend(left: &mut usize, bytes: usize, place: &str) -> Result<(), Mistake> {
    *left = left.checked_sub(bytes).ok_or_else(|| too_large(place))?;
    Ok(())
}

/// About how many bytes a value is as JSON.
fn size_of(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(size_of).sum::<usize>() + items.len() + 2,
        Json::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value) + 4).sum::<usize>() + 2
        }
        _ => 8,
    }
}
