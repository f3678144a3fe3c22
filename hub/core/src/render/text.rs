//! Strings with expressions in them.

use super::expression::{CompiledExpression, EVENT, Fault, TextBuilder, Val, show, write_json};
use super::mistake::too_large;
use super::{Meter, TemplateContext, TemplateError};

/// A string, taken apart.
#[derive(Debug)]
pub(super) struct TextTemplate(Vec<TextPiece>);

#[derive(Debug)]
enum TextPiece {
    Literal(Box<str>),
    Code(CompiledExpression),
}

impl TextTemplate {
    /// A string over an event.
    pub(super) fn new(text: &str, place: &str) -> Result<Self, TemplateError> {
        TextTemplate::over(text, place, &EVENT)
    }

    /// Takes a string apart. `{{` begins an expression, `}}` ends it; two braces that are meant as such are `{{ '{{' }}`.
    pub(super) fn over(
        text: &str,
        place: &str,
        roots: &'static [&'static str],
    ) -> Result<Self, TemplateError> {
        if text.contains("{%") || text.contains("{#") {
            let reason = "there are no statements, only expressions; a choice is one too: `{{ 'a' if data.x else 'b' }}`";
            return Err(TemplateError::new(place, reason));
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(start) = rest.find("{{") {
            let inside = &rest[start + 2..];
            let Some(end) = end_of(inside) else {
                return Err(TemplateError::new(
                    place,
                    "an expression that begins with `{{` does not end with `}}`",
                ));
            };
            if start > 0 {
                pieces.push(TextPiece::Literal(rest[..start].into()));
            }
            let code = CompiledExpression::new(&inside[..end], roots)
                .map_err(|reason| TemplateError::new(place, reason))?;
            pieces.push(TextPiece::Code(code));
            rest = &inside[end + 2..];
        }
        if rest.contains("}}") {
            return Err(TemplateError::new(place, "a `}}` without its `{{`"));
        }
        if !rest.is_empty() {
            pieces.push(TextPiece::Literal(rest.into()));
        }
        Ok(TextTemplate(pieces))
    }

    /// What is in it whatever the event, with `x` for each expression.
    pub(super) fn outline(&self) -> String {
        let piece = |piece: &TextPiece| match piece {
            TextPiece::Literal(literal) => literal.to_string(),
            TextPiece::Code(_) => "x".into(),
        };
        self.0.iter().map(piece).collect()
    }

    /// The one expression that it consists of, if it does.
    pub(super) fn whole(&self) -> Option<&CompiledExpression> {
        match &*self.0 {
            [TextPiece::Code(code)] => Some(code),
            _ => None,
        }
    }

    /// The text for this event, up to a length, with what expressions yield passed through `write`.
    pub(super) fn render(
        &self,
        view: &TemplateContext<'_>,
        place: &str,
        (meter, length_max): (&Meter, usize),
        write: impl Fn(&str, &mut TextBuilder, &Meter) -> Result<(), Fault>,
    ) -> Result<String, TemplateError> {
        let mut out = TextBuilder::kept(length_max);
        for piece in &self.0 {
            match piece {
                TextPiece::Literal(literal) => {
                    out.push(literal, meter).map_err(|_| too_large(place, length_max))?;
                }
                TextPiece::Code(code) => {
                    let written = code.eval(view, meter, |value| match value {
                        Val::Text(text) => write(text.as_str(), &mut out, meter),
                        value => {
                            let mut text = TextBuilder::default();
                            plain(value, code, &mut text, meter)?;
                            write(text.as_str(), &mut out, meter)
                        }
                    });
                    written.map_err(|gap| TemplateError::of(gap, place, length_max))?;
                }
            }
        }
        Ok(out.into_string())
    }
}

/// What expressions yield stays as it is.
pub(super) fn as_it_is(value: &str, out: &mut TextBuilder, meter: &Meter) -> Result<(), Fault> {
    out.push(value, meter)
}

/// Where the expression ends: the first `}}` that is not within quotes.
fn end_of(text: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'\'' || byte == b'"' => quote = Some(byte),
            None if byte == b'}' && bytes.get(at + 1) == Some(&b'}') => {
                // `{{ {'a': {}}}}` ends with the last two of its braces.
                let more = bytes[at..].iter().take_while(|&&byte| byte == b'}').count();
                return Some(at + more - 2);
            }
            None => {}
        }
    }
    None
}

/// A value within a text.
fn plain(
    value: &Val<'_>,
    code: &CompiledExpression,
    out: &mut TextBuilder,
    meter: &Meter,
) -> Result<(), Fault> {
    match value {
        Val::Text(_) | Val::Int(_) | Val::Float(_) => show(value, out, meter),
        Val::None => Err(Fault::Wrong(format!(
            "it is null, which is no text; say what to write instead: `{{{{ {} | default('…', true) }}}}`",
            code.text()
        ))),
        _ => write_json(value, out, meter),
    }
}
