//! What is written, as a value: shares, counts, words, sets of statuses, and durations.

use std::fmt;
use std::time::Duration;

use super::Place;
use super::nearest::{is_same, nearest};
use super::schema::{Key, Kind, Section};
use super::time::{self, Bare};
use super::tree::{Content, Node, shortened};
use crate::fault::StatusSet;

/// The value of a setting.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    /// A section that is on.
    On,
    /// A section that is switched off.
    Off,
    /// No limit.
    None,
    Time(Duration),
    /// In percent.
    Share(f64),
    Count(u32),
    Number(f64),
    Switch(bool),
    Word(&'static str),
    Words(Vec<&'static str>),
    Statuses(StatusSet),
    /// Names of faults, as they are written.
    Names(Vec<String>),
}

/// Why something is no value of its kind, and what to write instead.
#[derive(PartialEq, Debug)]
pub(super) struct Wrong {
    pub(super) reason: String,
    pub(super) remedy: String,
}

impl Wrong {
    pub(super) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Wrong { reason: reason.into(), remedy: remedy.into() }
    }
}

/// The value of `key` as it is written in `node`.
pub(super) fn read(key: &Key, node: &Node) -> Result<Value, Wrong> {
    match (key.kind, &node.content) {
        (Kind::Words(words), Content::List(items)) if items.is_empty() => {
            let remedy = format!("write at least one of {}, or leave it out", listed(words));
            Err(Wrong::new("the list is empty", remedy))
        }
        (Kind::Statuses, Content::List(items)) => {
            let texts = items.iter().map(|item| item.text().ok_or_else(|| wrong_type(key, item)));
            statuses(&texts.collect::<Result<Vec<_>, _>>()?.join(","))
        }
        (Kind::Names, _) => names(node),
        (kind, _) => {
            let text = node.text().ok_or_else(|| wrong_type(key, node))?;
            of_text(kind, text)
        }
    }
}

/// The value that a text stands for.
pub(super) fn of_text(kind: Kind, text: &str) -> Result<Value, Wrong> {
    match kind {
        Kind::Section(section) => switch_of_section(section, text),
        Kind::TimeOrNone if text == "none" => Ok(Value::None),
        Kind::Time | Kind::TimeOrNone => time::read(text, Bare::Refused).map(Value::Time),
        Kind::Share => share(text).map(Value::Share),
        Kind::Count => count(text).map(Value::Count),
        Kind::Number => number(text).map(Value::Number),
        Kind::Switch => switch(text).map(Value::Switch),
        Kind::Word(words) => word(text, words).map(Value::Word),
        Kind::Words(words) => {
            let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            let found = inner.split(',').map(|part| word(part.trim(), words));
            Ok(Value::Words(found.collect::<Result<_, _>>()?))
        }
        Kind::Statuses => statuses(text),
        Kind::Names => names(&Node::quoted(Place::whole("", 0), text)),
        Kind::Bases => Err(Wrong::new("bases are named elsewhere", "write `extends`")),
    }
}

fn switch_of_section(section: Section, text: &str) -> Result<Value, Wrong> {
    match text {
        "none" | "off" | "false" | "no" if section != Section::Part => Ok(Value::Off),
        "default" | "on" | "true" | "yes" => Ok(Value::On),
        _ if section == Section::Part => {
            Err(Wrong::new(format!("`{}` is not a section", shortened(text)), "write its settings below it"))
        }
        _ => Err(Wrong::new(
            format!("`{}` is not a section", shortened(text)),
            "write its settings below it, `default` or `none`",
        )),
    }
}

/// Digits with at most one point, so that `1e9`, `inf` and `0x10` are no numbers.
pub(super) fn plain_number(text: &str) -> Option<f64> {
    let digits =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(|c: char| c.is_ascii_digit());
    let known = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = if digits && known { text.parse().ok()? } else { return None };
    // What is printed must be read again, and a float of this size has no digits to lose.
    (number <= 1e17).then_some(number)
}

/// `10%`, `10 %` or `10`.
pub(super) fn share(text: &str) -> Result<f64, Wrong> {
    let shown = shortened(text);
    let bare = text.strip_suffix('%').map_or(text, str::trim_end);
    match plain_number(bare) {
        // A half, or half a percent? Nobody knows.
        Some(percent) if bare.len() == text.len() && percent > 0.0 && percent <= 1.0 => {
            let half = percent * 100.0;
            let reason = format!("`{shown}` may be a share of one or a percentage");
            Err(Wrong::new(reason, format!("write `{half}%` or `{shown}%`")))
        }
        Some(percent) if percent <= 100.0 => Ok(percent),
        Some(_) => Err(Wrong::new(format!("`{shown}` is more than 100 %"), "write a share like `10%`")),
        None => Err(Wrong::new(format!("`{shown}` is not a share"), "write percent, like `10%` or `0.5%`")),
    }
}

pub(super) fn count(text: &str) -> Result<u32, Wrong> {
    let digits = text.replace('_', "");
    if let Ok(count) = digits.parse() {
        return Ok(count);
    }
    let reason = if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        format!("`{}` is more than {}", shortened(text), u32::MAX)
    } else {
        format!("`{}` is not a whole number", shortened(text))
    };
    Err(Wrong::new(reason, "write one like `3`"))
}

pub(super) fn number(text: &str) -> Result<f64, Wrong> {
    plain_number(text).ok_or_else(|| {
        Wrong::new(
            format!("`{}` is not a number of zero or more", shortened(text)),
            "write one like `2` or `1.5`",
        )
    })
}

pub(super) fn switch(text: &str) -> Result<bool, Wrong> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(Wrong::new(
            format!("`{}` is neither true nor false", shortened(text)),
            "write `true` or `false`",
        )),
    }
}

pub(super) fn word(text: &str, words: &'static [&'static str]) -> Result<&'static str, Wrong> {
    if let Some(word) = words.iter().find(|word| is_same(word, text)) {
        return Ok(word);
    }
    let remedy = match nearest(text, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write {}", one_of(words)),
    };
    Err(Wrong::new(format!("`{}` is not known here", shortened(text)), remedy))
}

fn statuses(text: &str) -> Result<Value, Wrong> {
    text.parse().map(Value::Statuses).map_err(|_| {
        Wrong::new(
            format!("`{}` is not a set of statuses between 100 and 599", shortened(text)),
            "write one like `\"429,500-599\"`, or `none`",
        )
    })
}

/// More names than this are no rule that somebody reads.
const NAMES_MAX: usize = 100;

/// Names of faults: a list, or one line with commas. `none` is no list.
pub(super) fn names(node: &Node) -> Result<Value, Wrong> {
    const REMEDY: &str = "write names like `CacheConnectionException`, or leave it out";
    let missing = |node: &Node| Wrong::new(format!("{} stands here", node.noun()), REMEDY);
    let texts: Vec<&str> = match &node.content {
        Content::List(items) => {
            items.iter().map(|item| item.text().ok_or_else(|| missing(item))).collect::<Result<_, _>>()?
        }
        _ => match node.text().ok_or_else(|| missing(node))? {
            "none" => return Ok(Value::None),
            text => {
                let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
                inner.split(',').map(str::trim).collect()
            }
        },
    };
    let known = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | ':' | '-');
    let is_name = |text: &str| !text.is_empty() && text.len() <= 200 && text.chars().all(known);
    if let Some(wrong) = texts.iter().find(|text| !is_name(text)) {
        return Err(Wrong::new(format!("`{}` is not a name", shortened(wrong)), REMEDY));
    }
    if texts.is_empty() || texts.len() > NAMES_MAX {
        return Err(Wrong::new(format!("there are {} names and not 1 to {NAMES_MAX}", texts.len()), REMEDY));
    }
    Ok(Value::Names(texts.into_iter().map(str::to_owned).collect()))
}

fn wrong_type(key: &Key, node: &Node) -> Wrong {
    let wanted = match key.kind {
        Kind::Section(_) => "its settings below it, without dashes",
        Kind::Time | Kind::TimeOrNone => "a duration like `30s`",
        Kind::Share => "a share like `10%`",
        Kind::Count => "a whole number like `3`",
        Kind::Number => "a number like `1.5`",
        Kind::Switch => "`true` or `false`",
        Kind::Word(words) | Kind::Words(words) => {
            return Wrong::new(format!("{} stands here", node.noun()), format!("write {}", one_of(words)));
        }
        Kind::Statuses => "a set like `\"429,500-599\"`, or `none`",
        Kind::Bases => "the name of a base",
        Kind::Names => "a list of names",
    };
    let reason =
        if node.is_null() { "the value is missing".into() } else { format!("{} stands here", node.noun()) };
    Wrong::new(reason, format!("write {wanted}"))
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

pub(super) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// As one would write it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::On => f.write_str("default"),
            Value::Off | Value::None => f.write_str("none"),
            Value::Time(time) => f.write_str(&time::written(*time)),
            Value::Share(percent) => write!(f, "{percent}%"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Switch(switch) => write!(f, "{switch}"),
            Value::Word(word) => f.write_str(word),
            Value::Words(words) => write!(f, "[{}]", words.join(", ")),
            Value::Statuses(statuses) => write!(f, "{statuses}"),
            Value::Names(names) => write!(f, "[{}]", names.join(", ")),
        }
    }
}
