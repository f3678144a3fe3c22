//! Strings with expressions in them.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::engine::{Code, EVENT, Gap, Mistake};
use super::{OUTPUT_BYTES_MAX, View};

/// A string, taken apart.
#[derive(Debug)]
pub(super) struct Text(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Literal(Box<str>),
    Code(Code),
}

impl Text {
    /// A string over an event.
    pub(super) fn new(text: &str, place: &str) -> Result<Self, Mistake> {
        Text::over(text, place, &EVENT)
    }

    /// Takes a string apart. `{{` begins an expression, `}}` ends it; two braces that are meant as such are `{{ '{{' }}`.
    pub(super) fn over(text: &str, place: &str, roots: &[&str]) -> Result<Self, Mistake> {
        if text.contains("{%") || text.contains("{#") {
            let reason = "there are no statements, only expressions; a choice is one too: `{{ 'a' if data.x else 'b' }}`";
            return Err(Mistake::new(place, reason));
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(start) = rest.find("{{") {
            let inside = &rest[start + 2..];
            let Some(end) = end_of(inside) else {
                return Err(Mistake::new(
                    place,
                    "an expression that begins with `{{` does not end with `}}`",
                ));
            };
            if start > 0 {
                pieces.push(Piece::Literal(rest[..start].into()));
            }
            let code = Code::new(&inside[..end], roots).map_err(|reason| Mistake::new(place, reason))?;
            pieces.push(Piece::Code(code));
            rest = &inside[end + 2..];
        }
        if rest.contains("}}") {
            return Err(Mistake::new(place, "a `}}` without its `{{`"));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.into()));
        }
        Ok(Text(pieces))
    }

    /// What is in it whatever the event, with `x` for each expression.
    pub(super) fn outline(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Literal(literal) => literal.to_string(),
            Piece::Code(_) => "x".into(),
        };
        self.0.iter().map(piece).collect()
    }

    /// The one expression that it consists of, if it does.
    pub(super) fn whole(&self) -> Option<&Code> {
        match &*self.0 {
            [Piece::Code(code)] => Some(code),
            _ => None,
        }
    }

    /// The text for this event, with what expressions yield passed through `write`.
    pub(super) fn render(
        &self,
        view: &View,
        place: &str,
        write: impl Fn(&str, &mut String),
    ) -> Result<String, Mistake> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Code(code) => write(&plain(code, view, place)?, &mut out),
            }
            if out.len() > OUTPUT_BYTES_MAX {
                return Err(too_large(place));
            }
        }
        Ok(out)
    }
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
fn plain(code: &Code, view: &View, place: &str) -> Result<String, Mistake> {
    let value = code.eval(view).map_err(|gap| explain(gap, place))?;
    match value.kind() {
        ValueKind::String | ValueKind::Number => Ok(value.to_string()),
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::None => Err(Mistake::new(
            place,
            format!(
                "`{0}` is null, which is no text; say what to write instead: `{{{{ {0} | default('…', true) }}}}`",
                code.text()
            ),
        )),
        _ => json(&value, place).map(|json| json.to_string()),
    }
}

/// A value as JSON.
pub(super) fn json(value: &Value, place: &str) -> Result<serde_json::Value, Mistake> {
    super::convert::json_of(value).map_err(|reason| Mistake::new(place, reason))
}

pub(super) fn explain(gap: Gap, place: &str) -> Mistake {
    match gap {
        Gap::Missing(what) => Mistake::new(
            place,
            format!("the event has no `{what}`; say what to take instead: `{{{{ {what} | default('…') }}}}`"),
        ),
        Gap::Wrong(reason) => Mistake::new(place, reason),
    }
}

pub(super) fn too_large(place: &str) -> Mistake {
    Mistake::new(place, format!("what it makes is larger than {OUTPUT_BYTES_MAX} bytes"))
}
