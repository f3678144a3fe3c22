//! JSON with expressions in it.

use serde_json::Value as Json;

use super::expression::{CompiledExpression, Fault, TextBuilder, Val, write_json, write_json_text};
use super::mistake::too_large;
use super::text::{TextTemplate, as_it_is};
use super::{DEPTH_MAX, Meter, OUTPUT_BYTES_MAX, TemplateContext, TemplateError};

/// A JSON value whose strings may hold expressions.
#[derive(Debug)]
pub struct JsonTemplate(TemplateNode);

#[derive(Debug)]
enum TemplateNode {
    /// Without an expression in it, as it is written.
    Fixed(Box<str>),
    /// A text without an expression in it.
    Literal(Box<str>),
    Text(TextTemplate),
    List(Vec<TemplateNode>),
    Map(Vec<(String, TemplateNode)>),
}

impl JsonTemplate {
    /// Compiles a template; every mistake in it at once.
    pub fn new(template: &Json, place: &str) -> Result<Self, Vec<TemplateError>> {
        let mut mistakes = Vec::new();
        let node = TemplateNode::new(template, place, 0, &mut mistakes);
        if mistakes.is_empty() { Ok(JsonTemplate(node)) } else { Err(mistakes) }
    }

    /// The value for this event, as JSON.
    pub fn render(
        &self,
        view: &TemplateContext<'_>,
        place: &str,
        meter: &Meter,
    ) -> Result<String, TemplateError> {
        let mut out = TextBuilder::kept(OUTPUT_BYTES_MAX);
        self.0.render(view, &mut out, meter).map_err(|mistake| mistake.within(place))?;
        Ok(out.into_string())
    }

    /// The value for this event; a text as it is, and anything else as JSON.
    pub fn render_plain(
        &self,
        view: &TemplateContext<'_>,
        place: &str,
        meter: &Meter,
    ) -> Result<String, TemplateError> {
        match &self.0 {
            TemplateNode::Literal(text) => Ok(text.to_string()),
            TemplateNode::Text(text) => match text.whole() {
                None => text.render(view, place, (meter, OUTPUT_BYTES_MAX), as_it_is),
                Some(code) => {
                    let mut out = TextBuilder::kept(OUTPUT_BYTES_MAX);
                    let write = |value: &Val<'_>, out: &mut TextBuilder| match value {
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
    code: &CompiledExpression,
    view: &TemplateContext<'_>,
    out: &mut TextBuilder,
    meter: &Meter,
    write: impl FnOnce(&Val<'_>, &mut TextBuilder) -> Result<(), Fault>,
) -> Result<(), TemplateError> {
    code.eval(view, meter, |value| write(value, out))
        .map_err(|gap| TemplateError::of(gap, "", OUTPUT_BYTES_MAX))
}

impl TemplateNode {
    fn new(template: &Json, place: &str, depth: usize, mistakes: &mut Vec<TemplateError>) -> Self {
        if depth > DEPTH_MAX {
            mistakes.push(TemplateError::new(place, format!("must not be nested deeper than {DEPTH_MAX}")));
            return TemplateNode::Fixed("null".into());
        }
        match template {
            Json::String(text) if ["{{", "}}", "{%", "{#"].iter().any(|mark| text.contains(mark)) => {
                match TextTemplate::new(text, place) {
                    Ok(text) => TemplateNode::Text(text),
                    Err(mistake) => {
                        mistakes.push(mistake);
                        TemplateNode::Fixed("null".into())
                    }
                }
            }
            Json::String(text) => TemplateNode::Literal(text.as_str().into()),
            Json::Array(items) => {
                let item =
                    |(at, item)| TemplateNode::new(item, &format!("{place}[{at}]"), depth + 1, mistakes);
                TemplateNode::List(items.iter().enumerate().map(item).collect())
            }
            Json::Object(fields) => {
                let mut nodes = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    if name.contains("{{") {
                        mistakes
                            .push(TemplateError::new(&place, "the name of a field can't be an expression"));
                    }
                    nodes.push((name.clone(), TemplateNode::new(value, &place, depth + 1, mistakes)));
                }
                TemplateNode::Map(nodes)
            }
            fixed => TemplateNode::Fixed(fixed.to_string().into()),
        }
    }

    /// Writes the value for this event. The place of a mistake is below this one.
    fn render(
        &self,
        view: &TemplateContext<'_>,
        out: &mut TextBuilder,
        meter: &Meter,
    ) -> Result<(), TemplateError> {
        let fits = |written: Result<(), Fault>| written.map_err(|_| too_large("", OUTPUT_BYTES_MAX));
        match self {
            TemplateNode::Fixed(fixed) => fits(out.push(fixed, meter)),
            TemplateNode::Literal(text) => fits(write_json_text(text, out, meter)),
            TemplateNode::Text(text) => match text.whole() {
                Some(code) => evaluate(code, view, out, meter, |value, out| write_json(value, out, meter)),
                None => {
                    let text = text.render(view, "", (meter, OUTPUT_BYTES_MAX), as_it_is)?;
                    let written = fits(write_json_text(&text, out, meter));
                    meter.discard(text.capacity());
                    written
                }
            },
            TemplateNode::List(items) => {
                fits(out.push("[", meter))?;
                for (at, item) in items.iter().enumerate() {
                    fits(out.push(if at > 0 { "," } else { "" }, meter))?;
                    item.render(view, out, meter).map_err(|mistake| mistake.within(&format!("[{at}]")))?;
                }
                fits(out.push("]", meter))
            }
            TemplateNode::Map(fields) => {
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
