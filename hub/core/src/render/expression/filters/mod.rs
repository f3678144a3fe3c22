//! Filters: what stands behind a `|`. Each pays for what it looks at and for what it makes, before it does.

mod list;
mod number;
mod texts;

use super::fault::Fault;
use super::meter::Meter;
use super::show::{Builder, show};
use super::value::{Evaluated, Text, Val};

/// A filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filter {
    Default,
    Upper,
    Lower,
    Trim,
    Replace,
    Split,
    Join,
    Length,
    First,
    Last,
    Min,
    Max,
    Sum,
    Abs,
    Round,
    Int,
    Float,
    String,
    Bool,
    Sort,
    Unique,
    Map,
    Select,
    SelectAttr,
    Reject,
    RejectAttr,
}

/// A filter with its name, the largest number of arguments by place, and the names of those by name.
type Signature = (Filter, &'static str, usize, &'static [&'static str]);

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// All filters. What is not here can't be reached by any expression.
pub(super) const FILTERS: [Signature; 26] = [
    (Filter::Default, "default", 2, &[]),
    (Filter::Upper, "upper", 0, &[]),
    (Filter::Lower, "lower", 0, &[]),
    (Filter::Trim, "trim", 1, &[]),
    (Filter::Replace, "replace", 2, &[]),
    (Filter::Split, "split", 2, &[]),
    (Filter::Join, "join", 2, &["d", "attribute"]),
    (Filter::Length, "length", 0, &[]),
    (Filter::First, "first", 0, &[]),
    (Filter::Last, "last", 0, &[]),
    (Filter::Min, "min", 0, &["case_sensitive", "attribute"]),
    (Filter::Max, "max", 0, &["case_sensitive", "attribute"]),
    (Filter::Sum, "sum", 2, &["attribute", "start"]),
    (Filter::Abs, "abs", 0, &[]),
    (Filter::Round, "round", 2, &["precision", "method"]),
    (Filter::Int, "int", 2, &["default", "base"]),
    (Filter::Float, "float", 1, &["default"]),
    (Filter::String, "string", 0, &[]),
    (Filter::Bool, "bool", 0, &[]),
    (Filter::Sort, "sort", 0, &["case_sensitive", "reverse", "attribute"]),
    (Filter::Unique, "unique", 0, &["case_sensitive", "attribute"]),
    (
        Filter::Map,
        "map",
        ANY,
        &["attribute", "default", "precision", "method", "base", "d", "start", "case_sensitive", "reverse"],
    ),
    (Filter::Select, "select", ANY, &[]),
    (Filter::SelectAttr, "selectattr", ANY, &[]),
    (Filter::Reject, "reject", ANY, &[]),
    (Filter::RejectAttr, "rejectattr", ANY, &[]),
];

impl Filter {
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let known = FILTERS.iter().find(|(_, known, ..)| *known == name);
        known.map(|(filter, ..)| *filter).ok_or_else(|| {
            let names: Vec<&str> = FILTERS.iter().map(|(_, name, ..)| *name).collect();
            format!("there is no filter `{name}`; there are {}", names.join(", "))
        })
    }

    pub(super) fn name(self) -> &'static str {
        FILTERS.iter().find(|(filter, ..)| *filter == self).map_or("filter", |(_, name, ..)| name)
    }

    /// Whether it takes these arguments.
    pub(super) fn takes<'n>(self, placed: usize, named: impl Iterator<Item = &'n str>) -> Result<(), String> {
        let Some((_, name, most, names)) = FILTERS.iter().find(|(filter, ..)| *filter == self) else {
            return Ok(());
        };
        if placed > *most {
            return Err(format!("the filter `{name}` takes at most {most} arguments, not {placed}"));
        }
        let least = match self {
            Filter::Replace => 2,
            Filter::SelectAttr | Filter::RejectAttr => 1,
            _ => 0,
        };
        if placed < least {
            return Err(format!("the filter `{name}` needs {least} arguments, not {placed}"));
        }
        for given in named {
            if !names.contains(&given) {
                return Err(match names {
                    [] => format!("the filter `{name}` takes no argument by name, and here is `{given}`"),
                    names => {
                        format!("the filter `{name}` has no argument `{given}`; it has {}", names.join(", "))
                    }
                });
            }
        }
        Ok(())
    }

    /// What it makes of a value.
    pub(super) fn apply<'e>(
        self,
        value: &Val<'e>,
        given: &Given<'_, 'e>,
        meter: &Meter,
    ) -> Evaluated<Val<'e>> {
        meter.spend(1)?;
        self.work(value, given, meter).map_err(|fault| fault.by(self.name(), || value.size()))
    }

    fn work<'e>(self, value: &Val<'e>, given: &Given<'_, 'e>, meter: &Meter) -> Evaluated<Val<'e>> {
        match self {
            Filter::Default => default(value, given),
            Filter::Upper | Filter::Lower => texts::cased(value, self == Filter::Upper, meter),
            Filter::Trim => texts::trim(value, given, meter),
            Filter::Replace => texts::replace(value, given, meter),
            Filter::Split => texts::split(value, given, meter),
            Filter::Join => texts::join(value, given, meter),
            Filter::Length => texts::length(value, meter),
            Filter::First => list::first(value),
            Filter::Last => list::last(value),
            Filter::Min => list::extreme(value, given, false, meter),
            Filter::Max => list::extreme(value, given, true, meter),
            Filter::Sum => list::sum(value, given, meter),
            Filter::Abs => number::abs(value),
            Filter::Round => number::round(value, given, meter),
            Filter::Int => number::int(value, given, meter),
            Filter::Float => number::float(value, given, meter),
            Filter::String => text(value, meter).map(Val::Text),
            Filter::Bool => value.condition().map(Val::Bool),
            Filter::Sort => list::sort(value, given, meter),
            Filter::Unique => list::unique(value, given, meter),
            Filter::Map => list::map(value, given, meter),
            Filter::Select | Filter::Reject => {
                list::select(value, None, given, self == Filter::Select, meter)
            }
            Filter::SelectAttr | Filter::RejectAttr => {
                let attribute = given.placed.first().unwrap_or(&Val::UNDEFINED);
                let attribute = text(attribute, meter)?;
                let rest = Given { placed: given.placed.get(1..).unwrap_or_default(), named: given.named };
                list::select(value, Some(attribute.as_str()), &rest, self == Filter::SelectAttr, meter)
            }
        }
    }
}

/// The arguments of one call.
#[derive(Clone, Copy)]
pub(super) struct Given<'g, 'e> {
    pub(super) placed: &'g [Val<'e>],
    pub(super) named: &'g [(&'e str, Val<'e>)],
}

impl<'g, 'e> Given<'g, 'e> {
    /// An argument by its place or its name. What is none or missing is not there.
    fn get(&self, place: usize, name: &str) -> Option<&'g Val<'e>> {
        let there = |value: &&Val<'_>| !matches!(value, Val::None | Val::Undefined { .. });
        self.placed.get(place).filter(there).or_else(|| self.named(name).filter(there))
    }

    fn named(&self, name: &str) -> Option<&'g Val<'e>> {
        self.named.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// An argument that has to be a text.
    fn text(&self, place: usize, name: &str) -> Evaluated<Option<&'g str>> {
        self.get(place, name)
            .map(|value| value.as_str().ok_or_else(|| Fault::wrong(format!("`{name}` is not a string"))))
            .transpose()
    }

    /// An argument by name that has to be true or false; false if it is not there.
    fn is_set(&self, name: &str) -> Evaluated<bool> {
        match self.get(ANY, name) {
            None => Ok(false),
            Some(Val::Bool(yes)) => Ok(*yes),
            Some(other) => Err(Fault::wrong(format!("`{name}` is true or false, not a {}", other.kind()))),
        }
    }

    /// An argument that has to be a whole number.
    fn whole(&self, place: usize, name: &str) -> Evaluated<Option<i128>> {
        self.get(place, name)
            .map(|value| {
                value.as_int().ok_or_else(|| Fault::wrong(format!("`{name}` is not a whole number")))
            })
            .transpose()
    }
}

/// A value as a text.
pub(super) fn text<'e>(value: &Val<'e>, meter: &Meter) -> Evaluated<Text<'e>> {
    value.defined()?;
    if let Val::Text(text) = value {
        return Ok(text.clone());
    }
    let mut out = Builder::default();
    show(value, &mut out, meter)?;
    match out.into_value() {
        Val::Text(text) => Ok(text),
        _ => Ok(Text::Event("")),
    }
}

fn default<'e>(value: &Val<'e>, given: &Given<'_, 'e>) -> Evaluated<Val<'e>> {
    let other = || given.placed.first().cloned().unwrap_or(Val::str(""));
    let for_all = given.placed.get(1).map_or(Ok(false), Val::condition)?;
    Ok(if value.is_undefined() || (for_all && !value.is_true()) { other() } else { value.clone() })
}
