//! Variables of the environment, laid over the files.
//!
//! `SEAWALL_GUARDS__PAYMENT_SERVICE__BREAKER__COOLDOWN=60s`: a prefix, then the path with `__` between its parts. Names
//! are compared without case, `-` and `_`, because a variable can't be called `payment-service`. A variable with the
//! prefix but without `__` belongs to somebody else.

use super::book::{Book, Named};
use super::layer::{Item, Layer, Report, bases, child, refuse_both_ways, unknown, unknown_name};
use super::nearest::{is_same, nearest, squash};
use super::schema::{Key, Kind};
use super::tree::Node;
use super::value::{self, Wrong};
use super::{Origin, Place};

/// The variables of the process. What is not UTF-8 is kept as well as it goes, so that its mistake is seen.
pub(super) fn of_process() -> Vec<(String, String)> {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect()
}

pub(super) fn lay_over(
    prefix: &str,
    mut variables: Vec<(String, String)>,
    book: &mut Book,
    report: &mut Report,
) {
    // The environment has no order of its own; a report should have one.
    variables.sort();
    let mut layers: Vec<(bool, usize, Layer)> = Vec::new();
    for (variable, text) in &variables {
        let Some(path) = variable.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')) else {
            continue;
        };
        if !path.contains("__") {
            continue;
        }
        let place = Place::whole(variable, u32::MAX);
        match find(path, variable, book) {
            Ok((is_guard, at, key)) => {
                let known = layers.iter().position(|(guard, index, _)| (*guard, *index) == (is_guard, at));
                let known = known.unwrap_or_else(|| {
                    layers.push((is_guard, at, Layer::default()));
                    layers.len() - 1
                });
                set(&mut layers[known].2, key, place, text, report);
            }
            Err(wrong) => report.wrong(&place, "", wrong),
        }
    }
    for (is_guard, at, layer) in layers {
        let all = if is_guard { &mut book.guards } else { &mut book.configs };
        refuse_both_ways(&layer, &all[at].path, report);
        all[at].layers.push(layer);
    }
}

/// The guard or base, and the setting, that a variable speaks of.
fn find(path: &str, variable: &str, book: &Book) -> Result<(bool, usize, &'static Key), Wrong> {
    let mut parts = path.split("__");
    let (section, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (is_guard, all, what): (bool, &[Named], &str) = match squash(section).as_str() {
        "guards" => (true, &book.guards, "guard"),
        "configs" => (false, &book.configs, "base"),
        _ => {
            let near = nearest(section, ["GUARDS", "CONFIGS"]).unwrap_or("GUARDS");
            let whole = variable.replacen(section, near, 1);
            return Err(Wrong::new(
                format!("no such section `{section}`"),
                format!("did you mean `{whole}`?"),
            ));
        }
    };
    let mut found = all.iter().enumerate().filter(|(_, named)| is_same(&named.name, name));
    let at = match (found.next(), found.next()) {
        (Some((at, _)), None) => at,
        (Some((_, one)), Some((_, two))) => {
            let reason = format!("it means `{}` as well as `{}`", one.name, two.name);
            return Err(Wrong::new(reason, "give one of them another name"));
        }
        (None, _) => return Err(unknown_name(what, name, all.iter().map(|named| named.name.as_str()))),
    };
    let mut key: Option<&'static Key> = None;
    for part in parts {
        let section = key.map_or("", |key| key.path);
        key = Some(child(section, part).ok_or_else(|| {
            let mut wrong = unknown(section, part);
            wrong.reason = format!("no such key `{part}`");
            wrong
        })?);
    }
    key.map(|key| (is_guard, at, key)).ok_or_else(|| {
        Wrong::new("it names no setting", format!("write one, like `{variable}__CALL_TIMEOUT`"))
    })
}

fn set(layer: &mut Layer, key: &'static Key, place: Place, text: &str, report: &mut Report) {
    let node = Node::quoted(place.clone(), text);
    if key.kind == Kind::Bases {
        match bases(&node) {
            Ok(names) => layer.extends = Some(names),
            Err(wrong) => report.wrong(&place, "", wrong),
        }
        return;
    }
    match value::read(key, &node) {
        Ok(value) => layer.items.push(Item { key, value, origin: Origin::Written(place), written: None }),
        Err(wrong) => {
            layer.cannot_read(key, &place, None);
            report.wrong(&place, "", wrong);
        }
    }
}
