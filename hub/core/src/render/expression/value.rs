//! The values that expressions work with.
//!
//! What comes from the event is borrowed from it, and what an expression makes is shared, so that passing a value on costs
//! the same whatever its size. Everything that makes a new value takes the meter.

use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use super::fault::Fault;
use super::meter::Meter;
use super::tree::{Tree, TreeField, field};

/// A value. `'e` is the life of the event and of the rule.
#[derive(Clone, Debug)]
pub(in crate::render) enum Val<'e> {
    /// Nothing: the event has no such thing. `silent` if the expression itself says that there may be nothing, as an `if`
    /// without an `else` does.
    Undefined {
        silent: bool,
    },
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(TextValue<'e>),
    List(ListValue<'e>),
    Map(Map<'e>),
}

/// A text, or a part of one that an expression has made.
#[derive(Clone, Debug)]
pub(in crate::render) enum TextValue<'e> {
    Event(&'e str),
    Made(Rc<String>, Range<u32>),
}

#[derive(Clone, Debug)]
pub(in crate::render) enum ListValue<'e> {
    Event(&'e [Tree<'e>]),
    Made(Rc<Vec<Val<'e>>>),
}

/// An object, sorted by its keys.
#[derive(Clone, Debug)]
pub(in crate::render) enum Map<'e> {
    Event(&'e [TreeField<'e>]),
    Made(Rc<Vec<(Val<'e>, Val<'e>)>>),
}

pub(super) type EvalResult<T> = Result<T, Fault>;

/// The memory that a value takes in a list.
pub(super) const VALUE_BYTES: usize = size_of::<Val<'_>>();

impl<'e> Val<'e> {
    pub(super) const UNDEFINED: Val<'static> = Val::Undefined { silent: false };

    pub(super) fn of(tree: &'e Tree<'e>) -> Self {
        match tree {
            Tree::Null => Val::None,
            Tree::Bool(yes) => Val::Bool(*yes),
            Tree::Int(whole) => Val::Int(i128::from(*whole)),
            Tree::Large(whole) => Val::Int(i128::from(*whole)),
            Tree::Float(number) => Val::Float(*number),
            Tree::Text(text) => Val::Text(TextValue::Event(text)),
            Tree::List(items) => Val::List(ListValue::Event(items)),
            Tree::Map(fields) => Val::Map(Map::Event(fields)),
        }
    }

    pub(super) fn str(text: &'e str) -> Self {
        Val::Text(TextValue::Event(text))
    }

    /// A text that was made; its memory is paid for.
    pub(super) fn made(text: String) -> Self {
        let all = 0..u32::try_from(text.len()).unwrap_or(u32::MAX);
        Val::Text(TextValue::Made(Rc::new(text), all))
    }

    /// A list that was made; its memory is paid for.
    pub(super) fn list(items: Vec<Val<'e>>) -> Self {
        Val::List(ListValue::Made(Rc::new(items)))
    }

    pub(in crate::render) fn is_undefined(&self) -> bool {
        matches!(self, Val::Undefined { .. })
    }

    /// An error if there is nothing, and nobody said that there may be nothing.
    pub(super) fn defined(&self) -> EvalResult<()> {
        if matches!(self, Val::Undefined { silent: false }) { Err(Fault::Missing) } else { Ok(()) }
    }

    pub(in crate::render) fn is_true(&self) -> bool {
        match self {
            Val::Undefined { .. } | Val::None => false,
            Val::Bool(yes) => *yes,
            Val::Int(whole) => *whole != 0,
            Val::Float(number) => *number != 0.0,
            Val::Text(text) => !text.as_str().is_empty(),
            Val::List(items) => items.len() > 0,
            Val::Map(fields) => fields.len() > 0,
        }
    }

    /// Like [`Val::is_true`], for a condition.
    pub(super) fn condition(&self) -> EvalResult<bool> {
        self.defined()?;
        Ok(self.is_true())
    }

    pub(in crate::render) fn kind(&self) -> &'static str {
        match self {
            Val::Undefined { .. } => "undefined",
            Val::None => "none",
            Val::Bool(_) => "bool",
            Val::Int(_) | Val::Float(_) => "number",
            Val::Text(_) => "string",
            Val::List(_) => "sequence",
            Val::Map(_) => "map",
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Val::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// A whole number, also if it is written with a fraction of zero.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Val::Bool(yes) => Some(i128::from(*yes)),
            Val::Int(whole) => Some(*whole),
            #[expect(clippy::cast_possible_truncation, reason = "that it is exact is asked right here")]
            #[expect(
                clippy::cast_precision_loss,
                clippy::float_cmp,
                reason = "that it is exact is asked right here"
            )]
            Val::Float(number) if *number as i64 as f64 == *number => Some(i128::from(*number as i64)),
            _ => None,
        }
    }

    /// What is called `name` in it.
    pub(super) fn attr(&self, name: &str) -> EvalResult<Val<'e>> {
        match self {
            Val::Undefined { .. } => Err(Fault::Missing),
            Val::Map(fields) => Ok(fields.get(name).unwrap_or(Val::UNDEFINED)),
            _ => Ok(Val::UNDEFINED),
        }
    }

    /// What stands at `key` in it. Counting back from the end is allowed.
    pub(super) fn item(&self, key: &Val<'_>, meter: &Meter) -> EvalResult<Val<'e>> {
        let index = |length: usize| -> Option<usize> {
            let at = i64::try_from(key.as_int()?).ok()?;
            let back = usize::try_from(at.unsigned_abs()).ok()?;
            if at < 0 { length.checked_sub(back) } else { Some(back) }
        };
        Ok(match self {
            Val::Undefined { .. } => return Err(Fault::Missing),
            Val::List(items) => index(items.len()).and_then(|at| items.get(at)),
            Val::Map(fields) => fields.find(key, meter)?,
            Val::Text(text) => {
                meter.read(text.as_str().len())?;
                let whole = text.as_str();
                let at = index(whole.chars().count());
                at.and_then(|at| whole.char_indices().nth(at))
                    .map(|(at, one)| Val::Text(text.part(at..at + one.len_utf8())))
            }
            _ => None,
        }
        .unwrap_or(Val::UNDEFINED))
    }

    /// What stands at a path like `customer.0.name`.
    pub(super) fn path(&self, path: &str, meter: &Meter) -> EvalResult<Val<'e>> {
        let mut value = self.clone();
        for part in path.split('.') {
            meter.read(part.len())?;
            value = match part.parse::<u32>() {
                Ok(at) => value.item(&Val::Int(i128::from(at)), meter)?,
                Err(_) => value.attr(part)?,
            };
        }
        Ok(value)
    }

    /// Its items: those of a list, the names of an object, the characters of a text.
    pub(super) fn items(&self, meter: &Meter) -> EvalResult<ListValue<'e>> {
        self.defined()?;
        match self {
            Val::Undefined { .. } | Val::None => Ok(ListValue::Event(&[])),
            Val::List(items) => Ok(items.clone()),
            Val::Text(text) => {
                let whole = text.as_str();
                meter.spend(1 + whole.len())?;
                meter.hold(whole.len() * VALUE_BYTES)?;
                let part = |(at, one): (usize, char)| Val::Text(text.part(at..at + one.len_utf8()));
                Ok(ListValue::Made(Rc::new(whole.char_indices().map(part).collect())))
            }
            Val::Map(fields) => {
                meter.spend(1 + fields.len())?;
                meter.hold(fields.len() * VALUE_BYTES)?;
                Ok(ListValue::Made(Rc::new((0..fields.len()).filter_map(|at| fields.key(at)).collect())))
            }
            _ => Err(Fault::wrong(format!("{} is not iterable", self.kind()))),
        }
    }

    /// How large it is, in words.
    pub(super) fn size(&self) -> String {
        match self {
            Val::Text(text) => format!("{} bytes of text", text.as_str().len()),
            Val::List(items) => format!("{} items", items.len()),
            Val::Map(fields) => format!("{} fields", fields.len()),
            other => format!("a value of type {}", other.kind()),
        }
    }
}

impl<'e> TextValue<'e> {
    pub(in crate::render) fn as_str(&self) -> &str {
        match self {
            TextValue::Event(text) => text,
            TextValue::Made(text, range) => {
                text.get(range.start as usize..range.end as usize).unwrap_or_default()
            }
        }
    }

    /// A part of it, which costs no memory.
    pub(super) fn part(&self, range: Range<usize>) -> TextValue<'e> {
        match self {
            TextValue::Event(text) => TextValue::Event(text.get(range).unwrap_or_default()),
            TextValue::Made(text, whole) => {
                let at = |at: usize| whole.start + u32::try_from(at).unwrap_or(u32::MAX);
                TextValue::Made(text.clone(), at(range.start)..at(range.end))
            }
        }
    }
}

impl<'e> ListValue<'e> {
    pub(super) fn len(&self) -> usize {
        match self {
            ListValue::Event(items) => items.len(),
            ListValue::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<Val<'e>> {
        match self {
            ListValue::Event(items) => items.get(at).map(Val::of),
            ListValue::Made(items) => items.get(at).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Val<'e>> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl<'e> Map<'e> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Event(fields) => fields.len(),
            Map::Made(fields) => fields.len(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Val<'e>> {
        match self {
            Map::Event(fields) => field(fields, name).map(Val::of),
            Map::Made(fields) => {
                let at = fields.binary_search_by(|(key, _)| match key {
                    Val::Text(key) => key.as_str().cmp(name),
                    other => super::compare::rank(other).cmp(&super::compare::TEXT_RANK),
                });
                at.ok().map(|at| fields[at].1.clone())
            }
        }
    }

    fn find(&self, key: &Val<'_>, meter: &Meter) -> EvalResult<Option<Val<'e>>> {
        meter.copy(key.as_str().map_or(0, str::len))?;
        match (self, key.as_str()) {
            (Map::Event(_), None) => Ok(None),
            (_, Some(name)) => Ok(self.get(name)),
            (Map::Made(fields), None) => {
                for (there, value) in &**fields {
                    if super::compare::order(there, key, meter)? == Ordering::Equal {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Whether there is such a key.
    pub(super) fn has(&self, key: &Val<'_>, meter: &Meter) -> EvalResult<bool> {
        Ok(self.find(key, meter)?.is_some())
    }

    pub(super) fn key(&self, at: usize) -> Option<Val<'e>> {
        match self {
            Map::Event(fields) => fields.get(at).map(|(name, _)| Val::str(name)),
            Map::Made(fields) => fields.get(at).map(|(key, _)| key.clone()),
        }
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (Val<'e>, Val<'e>)> + '_ {
        (0..self.len()).filter_map(|at| match self {
            Map::Event(fields) => fields.get(at).map(|(name, value)| (Val::str(name), Val::of(value))),
            Map::Made(fields) => fields.get(at).cloned(),
        })
    }
}
