//! Filters over texts.

use super::super::fault::Fault;
use super::super::meter::Meter;
use super::super::show::{TextBuilder, show};
use super::super::value::{EvalResult, TextValue, VALUE_BYTES, Val};
use super::{FilterArguments, text};

/// In large or in small letters.
pub(super) fn cased<'e>(value: &Val<'e>, upper: bool, meter: &Meter) -> EvalResult<Val<'e>> {
    let text = text(value, meter)?;
    let text = text.as_str();
    meter.read(2 * text.len())?;
    // One letter may become three.
    meter.hold(3 * text.len())?;
    Ok(Val::made(if upper { text.to_uppercase() } else { text.to_lowercase() }))
}

/// Without white space around it, or without these characters.
pub(super) fn trim<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let text = text(value, meter)?;
    let whole = text.as_str();
    meter.read(whole.len())?;
    let (start, end) = match given.get(0, "chars") {
        None => (whole.trim_start().len(), whole.trim_end().len()),
        Some(chars) => {
            let chars = super::text(chars, meter)?;
            let chars: Vec<char> = chars.as_str().chars().take(CHARS_MAX + 1).collect();
            if chars.len() > CHARS_MAX {
                return Err(Fault::wrong(format!("`trim` takes at most {CHARS_MAX} characters")));
            }
            // Each character of the text is looked for among these.
            meter.spend(whole.len() * (1 + chars.len()) / 16)?;
            (whole.trim_start_matches(&chars[..]).len(), whole.trim_end_matches(&chars[..]).len())
        }
    };
    let from = (whole.len() - start).min(end);
    Ok(Val::Text(text.part(from..end)))
}

/// More characters than this are no list of what surrounds a text.
const CHARS_MAX: usize = 64;

/// With one text in place of another, everywhere.
pub(super) fn replace<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let argument = |at: usize| text(given.placed.get(at).unwrap_or(&Val::UNDEFINED), meter);
    let (whole, from, to) = (text(value, meter)?, argument(0)?, argument(1)?);
    let (whole, from, to) = (whole.as_str(), from.as_str(), to.as_str());
    meter.read(whole.len() + from.len())?;
    let (mut out, mut last) = (TextBuilder::default(), 0);
    for (at, found) in whole.match_indices(from) {
        out.push(&whole[last..at], meter)?;
        out.push(to, meter)?;
        last = at + found.len();
    }
    out.push(&whole[last..], meter)?;
    Ok(out.into_value())
}

/// Its parts: between a separator, or between white space.
pub(super) fn split<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let Val::Text(text) = value else {
        value.defined()?;
        return Err(Fault::wrong("invalid operation: value is not a string"));
    };
    let whole = text.as_str();
    let separator = given.text(0, "separator")?;
    let most = given
        .whole(1, "maxsplits")?
        .and_then(|most| usize::try_from(most).ok())
        .map(|most| most.saturating_add(1));
    meter.read(whole.len() + separator.map_or(0, str::len))?;
    match (separator, most) {
        (Some(separator), Some(most)) => parts(text, whole.splitn(most, separator), meter),
        (Some(separator), None) => parts(text, whole.split(separator), meter),
        (None, None) => parts(text, whole.split_whitespace(), meter),
        (None, Some(most)) => parts(text, first_words(whole, most), meter),
    }
}

/// Parts of a text as a list.
fn parts<'e, 'p>(
    text: &TextValue<'e>,
    parts: impl Iterator<Item = &'p str>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let start = text.as_str().as_ptr() as usize;
    let mut items = Vec::new();
    for part in parts {
        meter.spend(1)?;
        grow(&mut items, meter)?;
        let at = part.as_ptr() as usize - start;
        items.push(Val::Text(text.part(at..at + part.len())));
    }
    Ok(Val::list(items))
}

/// Makes room for one more item, and pays for it.
pub(super) fn grow<T>(items: &mut Vec<T>, meter: &Meter) -> EvalResult<()> {
    if items.len() == items.capacity() {
        let (old, new) = (items.capacity(), (items.capacity() * 2).max(4));
        let bytes = size_of::<T>().max(VALUE_BYTES);
        meter.hold(new * bytes)?;
        items.reserve_exact(new - items.len());
        meter.release(old * bytes);
    }
    Ok(())
}

/// The words of a text, up to so many; the last one is the rest.
fn first_words(whole: &str, most: usize) -> impl Iterator<Item = &str> {
    let (mut rest, mut left) = (whole.trim_start(), most);
    std::iter::from_fn(move || {
        if rest.is_empty() || left == 0 {
            return None;
        }
        left -= 1;
        let end = if left == 0 { None } else { rest.find(char::is_whitespace) };
        let (word, more) = rest.split_at(end.unwrap_or(rest.len()));
        rest = more.trim_start();
        Some(word)
    })
}

/// One text of many, with a joiner between them.
pub(super) fn join<'e>(
    value: &Val<'e>,
    given: &FilterArguments<'_, 'e>,
    meter: &Meter,
) -> EvalResult<Val<'e>> {
    let joiner = given.get(0, "d").map_or(Ok(TextValue::Event("")), |joiner| text(joiner, meter))?;
    let attribute = given.text(1, "attribute")?;
    if matches!(value, Val::Bool(_) | Val::Int(_) | Val::Float(_)) {
        return Err(Fault::wrong(format!("invalid operation: cannot join value of type {}", value.kind())));
    }
    let items = if value.is_undefined() { Val::None.items(meter)? } else { value.items(meter)? };
    let mut out = TextBuilder::default();
    for (at, item) in items.iter().enumerate() {
        meter.spend(1)?;
        if at > 0 {
            out.push(joiner.as_str(), meter)?;
        }
        let item = super::list::attribute_of(item, attribute, meter)?;
        show(&item, &mut out, meter)?;
    }
    Ok(out.into_value())
}

/// How many characters, items or fields it has.
pub(super) fn length<'e>(value: &Val<'e>, meter: &Meter) -> EvalResult<Val<'e>> {
    let length = match value {
        Val::Text(text) => {
            meter.read(text.as_str().len())?;
            text.as_str().chars().count()
        }
        Val::List(items) => items.len(),
        Val::Map(fields) => fields.len(),
        other => {
            let kind = other.kind();
            return Err(Fault::wrong(format!(
                "invalid operation: cannot calculate length of value of type {kind}"
            )));
        }
    };
    Ok(Val::Int(length as i128))
}
