//! JSON with expressions in it.

use serde_json::Value as Json;

use super::expression::{Builder, Code, Fault, Val, write_json, write_json_text};
use super::mistake::too_large;
use super::text::{Text, as_it_is};
use super::{DEPTH_MAX, Meter, Mistake, OUTPUT_BYTES_MAX, View};

/// A JSON value whose strings may hold expressions.
#[derive(Debug)]
pub struct Template(Node);

#[derive(Debug)]
enum Node {
    /// Without an expression in it, as it is written.
    Fixed(Box<str>),
    /// A text without an expression in it.
    Literal(Box<str>),
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

    /// The value for this event, as JSON.
    pub fn render(&self, view: &View<'_>, place: &str, meter: &Meter) -> Result<String, Mistake> {
        let mut out = Builder::kept(OUTPUT_BYTES_MAX);
        self.0.render(view, &mut out, meter).map_err(|mistake| mistake.within(place))?;
        Ok(out.into_string())
    }

    /// The value for this event; a text as it is, and anything else as JSON.
    pub fn render_plain(&self, view: &View<'_>, place: &str, meter: &Meter) -> Result<String, Mistake> {
        match &self.0 {
            Node::Literal(text) => Ok(text.to_string()),
            Node::Text(text) => match text.whole() {
                None => text.render(view, place, (meter, OUTPUT_BYTES_MAX), as_it_is),
                Some(code) => {
                    let mut out = Builder::kept(OUTPUT_BYTES_MAX);
                    let write = |value: &Val<'_>, out: &mut Builder| match value {
                        Val::Text(text) => out.push(text.as_str(), meter),
                        value => write_json(value, out, meter),
                    };
                    evaluate(code, view, &mut out, meter, write).map_err(|mistake| mistake.within(place))?;
                    Ok(out.into_string())
                }
            },
            _ => self.render(view, place, meter),
        }
    }
}

fn evaluate(
    code: &Code,
    view: &View<'_>,
    out: &mut Builder,
    meter: &Meter,
    write: impl FnOnce(&Val<'_>, &mut Builder) -> Result<(), Fault>,
) -> Result<(), Mistake> {
    code.eval(view, meter, |value| write(value, out)).map_err(|gap| Mistake::of(gap, "", OUTPUT_BYTES_MAX))
}

impl Node {
    fn new(template: &Json, place: &str, depth: usize, mistakes: &mut Vec<Mistake>) -> Self {
        if depth > DEPTH_MAX {
            mistakes.push(Mistake::new(place, format!("it is nested deeper than {DEPTH_MAX}")));
            return Node::Fixed("null".into());
        }
        match template {
            Json::String(text) if ["{{", "}}", "{%", "{#"].iter().any(|mark| text.contains(mark)) => {
                match Text::new(text, place) {
                    Ok(text) => Node::Text(text),
                    Err(mistake) => {
                        mistakes.push(mistake);
                        Node::Fixed("null".into())
                    }
                }
            }
            Json::String(text) => Node::Literal(text.as_str().into()),
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
            fixed => Node::Fixed(fixed.to_string().into()),
        }
    }

    /// Writes the value for this event. The place of a mistake is below this one.
    fn render(&self, view: &View<'_>, out: &mut Builder, meter: &Meter) -> Result<(), Mistake> {
        let fits = |written: Result<(), Fault>| written.map_err(|_| too_large("", OUTPUT_BYTES_MAX));
        match self {
            Node::Fixed(fixed) => fits(out.push(fixed, meter)),
            Node::Literal(text) => fits(write_json_text(text, out, meter)),
            Node::Text(text) => match text.whole() {
                Some(code) => evaluate(code, view, out, meter, |value, out| write_json(value, out, meter)),
                None => {
                    let text = text.render(view, "", (meter, OUTPUT_BYTES_MAX), as_it_is)?;
                    let written = fits(write_json_text(&text, out, meter));
                    meter.discard(text.capacity());
                    written
                }
            },
            Node::List(items) => {
                fits(out.push("[", meter))?;
                for (at, item) in items.iter().enumerate() {
                    fits(out.push(if at > 0 { "," } else { "" }, meter))?;
                    item.render(view, out, meter).map_err(|mistake| mistake.within(&format!("[{at}]")))?;
                }
                fits(out.push("]", meter))
            }
            Node::Map(fields) => {
                fits(out.push("{", meter))?;
                for (at, (name, node)) in fields.iter().enumerate() {
                    fits(out.push(if at > 0 { "," } else { "" }, meter))?;
                    fits(write_json_text(name, out, meter))?;
                    fits(out.push(":", meter))?;
                    node.render(view, out, meter).map_err(|mistake| mistake.within(&format!(".{name}")))?;
                }
                fits(out.push("}", meter))
            }
        }
    }
}
