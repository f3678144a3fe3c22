//! The format of one line.

use std::fmt::{self, Write};

use seawall::Clock;
use seawall_hub_core::service::wall_time;
use serde_json::{Map, Value};
use tracing::Event;
use tracing::field::{Field, Visit};

use super::Format;

/// No value is longer: what a peer says may be anything.
const VALUE_MAX: usize = 1_024;

/// The line of an event, with its end.
pub(super) fn write(format: Format, clock: &Clock, event: &Event<'_>) -> String {
    let mut fields = LineFields::default();
    event.record(&mut fields);
    let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
    compose(format, &wall_time(clock).to_string(), level, target, fields)
}

/// What an event says, without its fields: `[Module][Operation] Status.` What libraries say may be anything, so only who says it
/// is told.
pub(super) fn message(event: &Event<'_>) -> String {
    let mut fields = LineFields::default();
    event.record(&mut fields);
    if fields.message.starts_with('[') {
        fields.message
    } else {
        format!("[{}][log]", event.metadata().target())
    }
}

pub(super) fn compose(format: Format, time: &str, level: &str, target: &str, fields: LineFields) -> String {
    let LineFields { message, values } = fields;
    // What libraries say has no module and no operation.
    let message = if message.starts_with('[') { message } else { format!("[{target}][log] {message}") };
    match format {
        Format::Text => {
            let mut line = format!("{time} {level:5} ");
            escape(&mut line, &message);
            for (name, value) in &values {
                line.push(' ');
                line.push_str(name);
                line.push('=');
                match value {
                    Value::String(text) => quote(&mut line, text),
                    other => line.push_str(&other.to_string()),
                }
            }
            line.push('\n');
            line
        }
        Format::Json => {
            let (module, operation, status) = parts(&message);
            let mut object = Map::new();
            let first = [
                ("time", time),
                ("level", level),
                ("module", module),
                ("operation", operation),
                ("status", status),
            ];
            object.extend(first.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
            object.extend(values.into_iter().map(|(name, value)| (name.to_owned(), value)));
            format!("{}\n", Value::from(object))
        }
    }
}

/// Splits a message `[Module][Operation] Status.` into its parts.
fn parts(message: &str) -> (&str, &str, &str) {
    let split = || {
        let (module, rest) = message.strip_prefix('[')?.split_once("][")?;
        let (operation, status) = rest.split_once("] ")?;
        Some((module, operation, status))
    };
    split().unwrap_or(("", "", message))
}

/// What an event says, in its order.
#[derive(Default)]
pub(super) struct LineFields {
    pub(super) message: String,
    pub(super) values: Vec<(&'static str, Value)>,
}

impl LineFields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.values.push((field.name(), value.into()));
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.put(field, cut(&text)) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.put(field, cut(value));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A value that is one word stands as it is; any other in quotes, so that it can't be taken for the next field.
fn quote(line: &mut String, text: &str) {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '+' | '%' | '@' | '…');
    if !text.is_empty() && text.chars().all(plain) {
        return line.push_str(text);
    }
    line.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        escape(line, &rest[..at]);
        line.push('\\');
        line.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    escape(line, rest);
    line.push('"');
}

/// What would end the line, command a terminal or turn the direction of the text is written out.
fn escape(line: &mut String, text: &str) {
    for c in text.chars() {
        let hidden = matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || hidden {
            let _ = write!(line, "{}", c.escape_default());
        } else {
            line.push(c);
        }
    }
}
