//! Filters over lists.

use std::cmp::Ordering;

use super::super::compare::{self, order};
use super::super::condition::Test;
use super::super::fault::Fault;
use super::super::meter::Meter;
use super::super::operate::add;
use super::super::value::{EvalResult, ListValue, VALUE_BYTES, Val};
use super::texts::grow;
use super::{BuiltinFilter, FilterArguments};

/// The first item or character.
pub(super) fn first<'e>(value: &Val<'e>) -> EvalResult<Val<'e>> {
    match value {
        Val::Text(text) => {
            let end = text.as_str().chars().next().map(char::len_utf8);
            Ok(end.map_or(Val::UNDEFINED, |end| Val::Text(text.part(0..end))))
        }
        Val::List(items) => Ok(items.get(0).unwrap_or(Val::UNDEFINED)),
        Val::Map(fields) => Ok(fields.key(0).unwrap_or(Val::UNDEFINED)),
        _ => Err(Fault::wrong("invalid operation: cannot get first item from value")),
    }
}

/// The last item or character.
pub(super) fn last<'e>(value: &Val<'e>) -> EvalResult<Val<'e>> {
    match value {
        Val::Text(text) => {
            let whole = text.as_str();
            let last = whole.chars().next_back().map(char::len_utf8);
            Ok(last.map_or(Val::UNDEFINED, |last| Val::Text(text.part(whole.len() - last..whole.len()))))
        }
        Val::List(items) => {
            Ok(items.len().checked_sub(1).and_then(|at| items.get(at)).unwrap_or(Val::UNDEFINED))
        }
        _ => Err(Fault::wrong("invalid operation: cannot get last item from value")),
    }
}

/// An item, or what stands at a path in it; nothing if there is no such path.
pub(super) fn attribute_of<'e>(item: Val<'e>, attribute: Option<&str>, meter: &Meter) -> EvalResult<Val<'e>> {
    match attribute.map(|path| item.path(path, meter)) {
        None => Ok(item),
        Some(Err(Fault::Missing)) => Ok(Val::UNDEFINED),
        Some(found) => found,
    }
}

/// Orders as `sort` does: texts without regard to large and small letters, unless that is wanted.
fn order_keys(one: &Val<'_>, other: &Val<'_>, case_sensitive: bool, meter: &Meter) -> EvalResult<Ordering> {
    match (one, other) {
        (Val::Text(one), Val::Text(other)) if !case_sensitive => {
            let (one, other) = (one.as_str(), other.as_str());
            meter.read(2 * one.len().min(other.len()))?;
            let small = |byte: u8| byte.to_ascii_lowercase();
            Ok(one.bytes().map(small).cmp(other.bytes().map(small)))
        }
        _ => order(one, other, meter),
    }
}

/// The smallest or the largest item.
pub(super) fn extreme<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    largest: bool,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let items = value.items(meter)?;
    let case_sensitive = given.is_set("case_sensitive")?;
    let attribute = given.text(usize::MAX, "attribute")?;
    let mut best: Option<(Val<'e>, Val<'e>)> = None;
    for item in items.iter() {
        meter.spend(1)?;
        let key = attribute_of(item.clone(), attribute, meter)?;
        let better = match &best {
            None => true,
            Some((best, _)) => match order_keys(&key, best, case_sensitive, meter)? {
                Ordering::Less => !largest,
                // Of equal ones the first is the smallest, and the last the largest.
                Ordering::Equal | Ordering::Greater => largest,
            },
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Val::UNDEFINED, |(_, item)| item))
}

/// The sum of all items.
pub(super) fn sum<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let attribute = given.text(0, "attribute")?;
    let mut sum = given.get(1, "start").cloned().unwrap_or(Val::Int(0));
    for item in value.items(meter)?.iter() {
        meter.spend(1)?;
        let item = attribute_of(item, attribute, meter)?;
        if item.is_undefined() {
            continue;
        }
        let is_number = |value: &Val<'_>| matches!(value, Val::Int(_) | Val::Float(_));
        if is_number(&sum) && !is_number(&item) && !matches!(item, Val::Bool(_)) {
            return Err(Fault::wrong(format!(
                "invalid operation: can only sum numbers, got {}",
                item.kind()
            )));
        }
        sum = add(&sum, &item, meter)?;
    }
    Ok(sum)
}

/// The items in their order.
pub(super) fn sort<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let items = value.items(meter)?;
    let (case_sensitive, reverse) = (given.is_set("case_sensitive")?, given.is_set("reverse")?);
    let attribute = given.text(usize::MAX, "attribute")?;
    let paths: Vec<Option<&str>> = match attribute {
        None => vec![None],
        Some(all) => {
            let paths: Vec<_> =
                all.split(',').map(str::trim).filter(|path| !path.is_empty()).map(Some).collect();
            if paths.is_empty() { vec![Some(all)] } else { paths }
        }
    };
    // One key after the other, all of one item side by side.
    meter.spend(paths.len().saturating_mul(items.len()))?;
    meter.hold(paths.len().saturating_mul(items.len()).saturating_mul(VALUE_BYTES))?;
    let mut keys = Vec::with_capacity(paths.len() * items.len());
    for item in items.iter() {
        for path in &paths {
            keys.push(attribute_of(item.clone(), *path, meter)?);
        }
    }
    let width = paths.len();
    let sorted = compare::sort(items.len(), meter, |one, other| {
        let keys_of = |at: usize| &keys[at * width..(at + 1) * width];
        for (one, other) in keys_of(one).iter().zip(keys_of(other)) {
            let ordering = order_keys(one, other, case_sensitive, meter)?;
            if ordering != Ordering::Equal {
                return Ok(if reverse { ordering.reverse() } else { ordering });
            }
        }
        Ok(Ordering::Equal)
    })?;
    picked(&items, sorted.into_iter(), meter)
}

/// Each item once, where it stands first.
pub(super) fn unique<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let items = value.items(meter)?;
    let (attribute, case_sensitive) = (given.text(usize::MAX, "attribute")?, given.is_set("case_sensitive")?);
    meter.spend(items.len())?;
    meter.hold(items.len() * VALUE_BYTES)?;
    let mut keys = Vec::with_capacity(items.len());
    for item in items.iter() {
        let key = attribute_of(item, attribute, meter)?;
        keys.push(match &key {
            Val::Text(_) if !case_sensitive => super::texts::cased(&key, false, meter)?,
            _ => key,
        });
    }
    let sorted = compare::sort(items.len(), meter, |one, other| order(&keys[one], &keys[other], meter))?;
    meter.hold(items.len())?;
    let mut is_first = vec![true; items.len()];
    for pair in sorted.windows(2) {
        is_first[pair[1]] = order(&keys[pair[0]], &keys[pair[1]], meter)? != Ordering::Equal;
    }
    picked(&items, (0..items.len()).filter(|at| is_first[*at]), meter)
}

fn picked<'e>(
    items: &ListValue<'e>,
    places: impl Iterator<Item = usize>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    meter.spend(items.len())?;
    meter.hold(items.len() * VALUE_BYTES)?;
    Ok(Val::list(places.filter_map(|at| items.get(at)).collect()))
}

/// What an attribute or a filter makes of each item.
pub(super) fn map<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let items = value.items(meter)?;
    if let Some(attribute) = given.get(usize::MAX, "attribute") {
        if !given.placed.is_empty() {
            return Err(Fault::wrong("`map` takes an attribute or the name of a filter, not both"));
        }
        let default = given.named("default").filter(|value| !value.is_undefined());
        return each(&items, meter, |item| {
            let found = match attribute.as_str() {
                Some(path) => item.path(path, meter),
                None => item.item(attribute, meter),
            };
            match (found, default) {
                (Ok(found), Some(default)) if found.is_undefined() => Ok(default.clone()),
                (Err(Fault::Missing), Some(default)) => Ok(default.clone()),
                (found, _) => found,
            }
        });
    }
    let name = given.placed.first().and_then(Val::as_str);
    let name = name.ok_or_else(|| Fault::wrong("`map` needs the name of a filter, or `attribute=`"))?;
    let filter = BuiltinFilter::named(name).map_err(Fault::Wrong)?;
    let rest = FilterArguments { placed: &given.placed[1..], named: given.named };
    if matches!(filter, BuiltinFilter::Map) && rest.placed.len() > NESTED_MAX {
        return Err(Fault::wrong(format!("`map` may be nested {NESTED_MAX} deep")));
    }
    filter.takes(rest.placed.len(), rest.named.iter().map(|(name, _)| *name)).map_err(Fault::Wrong)?;
    each(&items, meter, |item| filter.apply(&item, &rest, meter))
}

/// How many arguments a `map` within a `map` may have, and so how deep they may be nested.
const NESTED_MAX: usize = 8;

fn each<'e>(
    items: &ListValue<'e>,
    meter: &Meter,
    make: impl Fn(Val<'e>) -> EvalResult<Val<'e>>,
) -> EvalResult<Val<'e>> {
    meter.spend(items.len())?;
    meter.hold(items.len() * VALUE_BYTES)?;
    let mut made = Vec::with_capacity(items.len());
    for item in items.iter() {
        made.push(make(item)?);
    }
    Ok(Val::list(made))
}

/// The items for which a test holds, or those for which it does not.
pub(super) fn select<'e>(
    value: &Val<'e>,
    attribute: Option<&str>,
    given: &FilterArguments<'_, 'e>,
    wanted: bool,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let test = match given.placed.first() {
        None => None,
        Some(name) => Some(Test::named(super::text(name, meter)?.as_str()).map_err(Fault::Wrong)?),
    };
    let arguments = given.placed.get(1..).unwrap_or_default();
    let mut selected = Vec::new();
    for item in value.items(meter)?.iter() {
        meter.spend(1)?;
        let tested = match attribute {
            None => item.clone(),
            Some(path) => item.path(path, meter)?,
        };
        let holds = match test {
            None => tested.is_true(),
            Some(test) => test.holds(&tested, arguments, meter)?,
        };
        if holds == wanted {
            grow(&mut selected, meter)?;
            selected.push(item);
        }
    }
    Ok(Val::list(selected))
}
