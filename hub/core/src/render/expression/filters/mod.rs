//! Filters: what stands behind a `|`. Each pays for what it looks at and for what it makes, before it does.

mod list;
mod number;
mod texts;

use super::fault::Fault;
use super::meter::Meter;
use super::show::{TextBuilder, show};
use super::value::{EvalResult, TextValue, Val};

/// A built-in filter, like `upper` in `x | upper`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BuiltinFilter {
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
type Signature = (BuiltinFilter, &'static str, usize, &'static [&'static str]);

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// All filters. What is not here can't be reached by any expression.
pub(super) const FILTERS: [Signature; 26] = [
    (BuiltinFilter::Default, "default", 2, &[]),
    (BuiltinFilter::Upper, "upper", 0, &[]),
    (BuiltinFilter::Lower, "lower", 0, &[]),
    (BuiltinFilter::Trim, "trim", 1, &[]),
    (BuiltinFilter::Replace, "replace", 2, &[]),
    (BuiltinFilter::Split, "split", 2, &[]),
    (BuiltinFilter::Join, "join", 2, &["d", "attribute"]),
    (BuiltinFilter::Length, "length", 0, &[]),
    (BuiltinFilter::First, "first", 0, &[]),
    (BuiltinFilter::Last, "last", 0, &[]),
    (BuiltinFilter::Min, "min", 0, &["case_sensitive", "attribute"]),
    (BuiltinFilter::Max, "max", 0, &["case_sensitive", "attribute"]),
    (BuiltinFilter::Sum, "sum", 2, &["attribute", "start"]),
    (BuiltinFilter::Abs, "abs", 0, &[]),
    (BuiltinFilter::Round, "round", 2, &["precision", "method"]),
    (BuiltinFilter::Int, "int", 2, &["default", "base"]),
    (BuiltinFilter::Float, "float", 1, &["default"]),
    (BuiltinFilter::String, "string", 0, &[]),
    (BuiltinFilter::Bool, "bool", 0, &[]),
    (BuiltinFilter::Sort, "sort", 0, &["case_sensitive", "reverse", "attribute"]),
    (BuiltinFilter::Unique, "unique", 0, &["case_sensitive", "attribute"]),
    (
        BuiltinFilter::Map,
        "map",
        ANY,
        &["attribute", "default", "precision", "method", "base", "d", "start", "case_sensitive", "reverse"],
    ),
    (BuiltinFilter::Select, "select", ANY, &[]),
    (BuiltinFilter::SelectAttr, "selectattr", ANY, &[]),
    (BuiltinFilter::Reject, "reject", ANY, &[]),
    (BuiltinFilter::RejectAttr, "rejectattr", ANY, &[]),
];

impl BuiltinFilter {
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let known = FILTERS.iter().find(|(_, known, ..)| *known == name);
        known.map(|(filter, ..)| *filter).ok_or_else(|| {
            let names: Vec<&str> = FILTERS.iter().map(|(_, name, ..)| *name).collect();
            format!("unknown filter `{name}`. Known: {}", names.join(", "))
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
            BuiltinFilter::Replace => 2,
            BuiltinFilter::SelectAttr | BuiltinFilter::RejectAttr => 1,
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
        given: &FilterArguments<'_, 'e>,
        meter: &Meter,
    ) -> EvalResult<Val<'e>> {
        meter.spend(1)?;
        self.work(value, given, meter).map_err(|fault| fault.by(self.name(), || value.size()))
    }

    fn work<'e>(
        self,
        value: &Val<'e>,
        given: &FilterArguments<'_, 'e>,
        meter: &Meter,
    ) -> EvalResult<Val<'e>> {
        match self {
            BuiltinFilter::Default => default(value, given),
            BuiltinFilter::Upper | BuiltinFilter::Lower => {
                texts::cased(value, self == BuiltinFilter::Upper, meter)
            }
            BuiltinFilter::Trim => texts::trim(value, given, meter),
            BuiltinFilter::Replace => texts::replace(value, given, meter),
            BuiltinFilter::Split => texts::split(value, given, meter),
            BuiltinFilter::Join => texts::join(value, given, meter),
            BuiltinFilter::Length => texts::length(value, meter),
            BuiltinFilter::First => list::first(value),
            BuiltinFilter::Last => list::last(value),
            BuiltinFilter::Min => list::extreme(value, given, false, meter),
            BuiltinFilter::Max => list::extreme(value, given, true, meter),
            BuiltinFilter::Sum => list::sum(value, given, meter),
            BuiltinFilter::Abs => number::abs(value),
            BuiltinFilter::Round => number::round(value, given, meter),
            BuiltinFilter::Int => number::int(value, given, meter),
            BuiltinFilter::Float => number::float(value, given, meter),
            BuiltinFilter::String => text(value, meter).map(Val::Text),
            BuiltinFilter::Bool => value.condition().map(Val::Bool),
            BuiltinFilter::Sort => list::sort(value, given, meter),
            BuiltinFilter::Unique => list::unique(value, given, meter),
            BuiltinFilter::Map => list::map(value, given, meter),
            BuiltinFilter::Select | BuiltinFilter::Reject => {
                list::select(value, None, given, self == BuiltinFilter::Select, meter)
            }
            BuiltinFilter::SelectAttr | BuiltinFilter::RejectAttr => {
                let attribute = given.placed.first().unwrap_or(&Val::UNDEFINED);
                let attribute = text(attribute, meter)?;
                let rest =
                    FilterArguments { placed: given.placed.get(1..).unwrap_or_default(), named: given.named };
                list::select(value, Some(attribute.as_str()), &rest, self == BuiltinFilter::SelectAttr, meter)
            }
        }
    }
}

/// The arguments of one call.
#[derive(Clone, Copy)]
pub(super) struct FilterArguments<'g, 'e> {
    pub(super) placed: &'g [Val<'e>],
    pub(super) named: &'g [(&'e str, Val<'e>)],
}

impl<'g, 'e> FilterArguments<'g, 'e> {
    /// An argument by its place or its name. What is none or missing is not there.
    fn get(&self, place: usize, name: &str) -> Option<&'g Val<'e>> {
        let there = |value: &&Val<'_>| !matches!(value, Val::None | Val::Undefined { .. });
        self.placed.get(place).filter(there).or_else(|| self.named(name).filter(there))
    }

    fn named(&self, name: &str) -> Option<&'g Val<'e>> {
        self.named.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// An argument that has to be a text.
    fn text(&self, place: usize, name: &str) -> EvalResult<Option<&'g str>> {
        self.get(place, name)
            .map(|value| value.as_str().ok_or_else(|| Fault::wrong(format!("`{name}` is not a string"))))
            .transpose()
    }

    /// An argument by name that has to be true or false; false if it is not there.
    fn is_set(&self, name: &str) -> EvalResult<bool> {
        match self.get(ANY, name) {
            None => Ok(false),
            Some(Val::Bool(yes)) => Ok(*yes),
            Some(other) => Err(Fault::wrong(format!("`{name}` is true or false, not a {}", other.kind()))),
        }
    }

    /// An argument that has to be a whole number.
    fn whole(&self, place: usize, name: &str) -> EvalResult<Option<i128>> {
        self.get(place, name)
            .map(|value| {
                value.as_int().ok_or_else(|| Fault::wrong(format!("`{name}` is not a whole number")))
            })
            .transpose()
    }
}

/// A value as a text.
pub(super) fn text<'e>(value: &Val<'e>, meter: &Meter) -> EvalResult<TextValue<'e>> {
    value.defined()?;
    if let Val::Text(text) = value {
        return Ok(text.clone());
    }
    let mut out = TextBuilder::default();
    show(value, &mut out, meter)?;
    match out.into_value() {
        Val::Text(text) => Ok(text),
        _ => Ok(TextValue::Event("")),
    }
}

fn default<'e>(value: &Val<'e>, given: &FilterArguments<'_, 'e>) -> EvalResult<Val<'e>> {
    let other = || given.placed.first().cloned().unwrap_or(Val::str(""));
    let for_all = given.placed.get(1).map_or(Ok(false), Val::condition)?;
    Ok(if value.is_undefined() || (for_all && !value.is_true()) { other() } else { value.clone() })
}
