//! Writing values down: as text, and as JSON.

use std::fmt::Write as _;

use super::fault::Fault;
use super::meter::Meter;
use super::value::{EvalResult, Val};

/// A text that grows, and pays for it before it does.
#[derive(Debug, Default)]
pub(in crate::render) struct TextBuilder {
    text: String,
    /// The largest length, for a text that stays until the end of the rendering.
    kept: Option<usize>,
}

impl TextBuilder {
    /// A text that stays until the end of the rendering, up to this length.
    pub(in crate::render) fn kept(length_max: usize) -> Self {
        TextBuilder { text: String::new(), kept: Some(length_max) }
    }

    pub(in crate::render) fn as_str(&self) -> &str {
        &self.text
    }

    pub(in crate::render) fn into_string(self) -> String {
        self.text
    }

    pub(super) fn into_value<'e>(self) -> Val<'e> {
        Val::made(self.text)
    }

    /// Adds a text.
    pub(in crate::render) fn push(&mut self, more: &str, meter: &Meter) -> EvalResult<()> {
        meter.copy(more.len())?;
        let length = self.text.len().saturating_add(more.len());
        if self.kept.is_some_and(|most| length > most) {
            return Err(Fault::TooLarge);
        }
        if length > self.text.capacity() {
            let (old, new) = (self.text.capacity(), length.max(self.text.capacity() * 2).max(64));
            if self.kept.is_some() {
                meter.keep(new)?;
            } else {
                meter.hold(new)?;
            }
            self.text.reserve_exact(new - self.text.len());
            if self.kept.is_some() { meter.discard(old) } else { meter.release(old) }
        }
        self.text.push_str(more);
        Ok(())
    }

    /// Adds a text in quotes, with `escape` for the characters that can't stand there as they are.
    fn push_quoted(
        &mut self,
        text: &str,
        quote: &str,
        meter: &Meter,
        escape: impl Fn(char, &mut String) -> bool,
    ) -> EvalResult<()> {
        meter.read(text.len())?;
        self.push(quote, meter)?;
        let (mut from, mut escaped) = (0, String::new());
        for (at, one) in text.char_indices() {
            if escape(one, &mut escaped) {
                self.push(&text[from..at], meter)?;
                self.push(&escaped, meter)?;
                escaped.clear();
                from = at + one.len_utf8();
            }
        }
        self.push(&text[from..], meter)?;
        self.push(quote, meter)
    }

    fn push_number(&mut self, number: impl std::fmt::Display, meter: &Meter) -> EvalResult<()> {
        // Numbers are written digit by digit.
        meter.spend(8)?;
        let mut text = String::new();
        let _ = write!(text, "{number}");
        self.push(&text, meter)
    }
}

/// A value as text, as `~` and `string` write it.
pub(in crate::render) fn show(value: &Val<'_>, out: &mut TextBuilder, meter: &Meter) -> EvalResult<()> {
    match value {
        Val::Undefined { .. } => Ok(()),
        Val::Text(text) => out.push(text.as_str(), meter),
        Val::Float(number) if number.is_infinite() => {
            out.push(if *number < 0.0 { "-inf" } else { "inf" }, meter)
        }
        Val::Float(number) => {
            let text = number.to_string();
            meter.spend(8)?;
            out.push(&text, meter)?;
            if text.contains('.') || number.is_nan() { Ok(()) } else { out.push(".0", meter) }
        }
        other => represent(other, out, meter),
    }
}

/// A value within a list or an object that is written as text.
fn represent(value: &Val<'_>, out: &mut TextBuilder, meter: &Meter) -> EvalResult<()> {
    meter.spend(1)?;
    match value {
        Val::Undefined { .. } => out.push("undefined", meter),
        Val::None => out.push("None", meter),
        Val::Bool(yes) => out.push(if *yes { "True" } else { "False" }, meter),
        Val::Int(whole) => out.push_number(whole, meter),
        Val::Float(number) => out.push_number(format_args!("{number:?}"), meter),
        Val::Text(text) => {
            let text = text.as_str();
            meter.read(text.len())?;
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let sign = if quote == '"' { "\"" } else { "'" };
            out.push_quoted(text, sign, meter, |one, escaped| escape_python(one, quote, escaped))
        }
        Val::List(items) => {
            out.push("[", meter)?;
            for (at, item) in items.iter().enumerate() {
                out.push(if at > 0 { ", " } else { "" }, meter)?;
                represent(&item, out, meter)?;
            }
            out.push("]", meter)
        }
        Val::Map(fields) => {
            out.push("{", meter)?;
            for (at, (key, value)) in fields.pairs().enumerate() {
                out.push(if at > 0 { ", " } else { "" }, meter)?;
                represent(&key, out, meter)?;
                out.push(": ", meter)?;
                represent(&value, out, meter)?;
            }
            out.push("}", meter)
        }
    }
}

fn escape_python(one: char, quote: char, escaped: &mut String) -> bool {
    match one {
        '\n' => escaped.push_str("\\n"),
        '\r' => escaped.push_str("\\r"),
        '\t' => escaped.push_str("\\t"),
        one if one == quote || one == '\\' => {
            escaped.push('\\');
            escaped.push(one);
        }
        one if one.is_control() => {
            let code = u32::from(one);
            let _ = if code <= 0xFF {
                write!(escaped, "\\x{code:02x}")
            } else {
                write!(escaped, "\\u{code:04x}")
            };
        }
        _ => return false,
    }
    true
}

/// A value as JSON.
pub(in crate::render) fn write_json(value: &Val<'_>, out: &mut TextBuilder, meter: &Meter) -> EvalResult<()> {
    meter.spend(1)?;
    match value {
        Val::Undefined { .. } => Err(Fault::wrong("undefined has no form in JSON")),
        Val::None => out.push("null", meter),
        Val::Bool(yes) => out.push(if *yes { "true" } else { "false" }, meter),
        Val::Int(whole) if i64::try_from(*whole).is_ok() || u64::try_from(*whole).is_ok() => {
            out.push_number(whole, meter)
        }
        Val::Int(whole) => Err(Fault::wrong(format!("{whole} is too large a number"))),
        Val::Float(number) => match serde_json::Number::from_f64(*number) {
            Some(number) => out.push_number(number, meter),
            None => Err(Fault::wrong(format!("{number} is no number in JSON"))),
        },
        Val::Text(text) => write_json_text(text.as_str(), out, meter),
        Val::List(items) => {
            out.push("[", meter)?;
            for (at, item) in items.iter().enumerate() {
                out.push(if at > 0 { "," } else { "" }, meter)?;
                write_json(&item, out, meter)?;
            }
            out.push("]", meter)
        }
        Val::Map(fields) => {
            out.push("{", meter)?;
            for (at, (key, value)) in fields.pairs().enumerate() {
                let Val::Text(name) = &key else {
                    let mut shown = TextBuilder::default();
                    show(&key, &mut shown, meter)?;
                    return Err(Fault::wrong(format!("the name of a field is no text: {}", shown.as_str())));
                };
                out.push(if at > 0 { "," } else { "" }, meter)?;
                write_json_text(name.as_str(), out, meter)?;
                out.push(":", meter)?;
                write_json(&value, out, meter)?;
            }
            out.push("}", meter)
        }
    }
}

/// A text as JSON, in its quotes.
pub(in crate::render) fn write_json_text(text: &str, out: &mut TextBuilder, meter: &Meter) -> EvalResult<()> {
    out.push_quoted(text, "\"", meter, |one, escaped| {
        match one {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            '\0'..'\u{20}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(one));
            }
            _ => return false,
        }
        true
    })
}
