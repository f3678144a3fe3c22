//! Which dead letters: the same names after a question mark and in a body.

use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, GroupState, LetterFilter, LetterState,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::Value;

use super::super::access::Caller;
use super::super::fields::Fields;
use super::super::query::Query;

/// The names of the filter fields.
pub(super) const NAMES: &str =
    "service, rule, event, reason, status, group, standing, since, until, q, replayed";

/// The maximum number of ids in a filter.
const IDS_MAX: usize = 1_000;
/// The maximum length of a search text in characters.
const TEXT_MAX: usize = 1_000;

/// Those that were never replayed, and those that were. Of what was deleted nobody says either.
const FRESH: [LetterState; 2] = [LetterState::Open, LetterState::Parked];
const REPLAYED: [LetterState; 3] = [LetterState::Replaying, LetterState::Delivered, LetterState::FailedAgain];

/// Where a filter is written down.
pub(super) trait FilterInput {
    /// What stands under this name, taken out.
    fn said(&mut self, name: &str) -> Option<String>;
    /// Something is wrong with it.
    fn refuse(&mut self, name: &str, reason: String);
}

impl FilterInput for Query {
    fn said(&mut self, name: &str) -> Option<String> {
        self.text(name)
    }

    fn refuse(&mut self, name: &str, reason: String) {
        self.wrong(name, reason);
    }
}

/// A status, a switch and a list of standings may stand there as such. Anything else that is no text is a mistake: left out, it would
/// take more than was asked for.
impl FilterInput for Fields {
    fn said(&mut self, name: &str) -> Option<String> {
        let text = match self.any(name)? {
            Value::String(text) => text,
            Value::Bool(said) if name == "replayed" => said.to_string(),
            // 422.0 is a whole number too.
            Value::Number(number) if name == "status" => match number.as_f64() {
                Some(whole) if whole.fract() == 0.0 => format!("{whole:.0}"),
                _ => number.to_string(),
            },
            Value::Array(items) if name == "standing" && items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            }
            _ => {
                self.wrong(name, "must be a string");
                return None;
            }
        };
        if text.is_empty() {
            // Whoever forgot to fill it in would get everything.
            self.wrong(name, "must not be empty; omit it for all");
            return None;
        }
        Some(text)
    }

    fn refuse(&mut self, name: &str, reason: String) {
        self.wrong(name, reason);
    }
}

/// Which dead letters, of those that the caller may see.
pub(super) fn letters(from: &mut impl FilterInput, caller: &Caller) -> LetterFilter {
    LetterFilter {
        service: parsed(from, "service", |text| Slug::new(text).map_err(|error| error.to_string())),
        rule: parsed(from, "rule", |text| Slug::new(text).map_err(|error| error.to_string())),
        event: from.said("event"),
        reason: words(from, "reason", &DeadLetterReason::ALL.map(|one| (one.word(), one))).first().copied(),
        status: parsed(from, "status", |text| {
            let status = text.parse().ok().filter(|status| (100..=999).contains(status));
            status.ok_or_else(|| "must be a status from 100 to 999".into())
        }),
        group: parsed(from, "group", |text| {
            Fingerprint::parse(text)
                .ok_or_else(|| "must be a fingerprint such as `grp_0123456789abcdef`".into())
        }),
        states: standings(from),
        since: time(from, "since"),
        before: time(from, "until"),
        text: text(from),
        ids: Vec::new(),
        except: Vec::new(),
        within: caller.within(),
    }
}

/// The same in a body, where they can also be named one by one.
pub(super) fn letters_or_ids(from: &mut Fields, caller: &Caller) -> LetterFilter {
    let mut ids = Vec::new();
    if from.has("ids") {
        let texts = from.texts("ids");
        if !(1..=IDS_MAX).contains(&texts.len()) {
            let reason = format!(
                "1 to {IDS_MAX} are expected; leave it out for all, or choose by what they have in common"
            );
            from.wrong("ids", reason);
        }
        for (place, text) in texts.iter().enumerate() {
            match DeliveryId::parse(text) {
                Some(id) => ids.push(id),
                None => from.wrong(&format!("ids[{place}]"), "must be the id of a dead letter"),
            }
        }
    }
    LetterFilter { ids, ..letters(from, caller) }
}

/// Which groups, of those that the caller may see.
pub(super) fn groups(query: &mut Query, caller: &Caller) -> GroupFilter {
    GroupFilter {
        service: query.parsed("service", Slug::new),
        rule: query.parsed("rule", Slug::new),
        states: words(query, "state", &GroupState::ALL.map(|state| (state.word(), state))),
        services: caller.within().services,
    }
}

fn parsed<T>(
    from: &mut impl FilterInput,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = from.said(name)?;
    parse(&text).map_err(|reason| from.refuse(name, reason)).ok()
}

fn time(from: &mut impl FilterInput, name: &str) -> Option<Millis> {
    parsed(from, name, |text| {
        Millis::from_rfc3339(text)
            .ok_or_else(|| format!("must be a time such as `2026-01-31T12:00:00Z`, not `{text}`"))
    })
}

/// Words with commas between them.
fn words<T: Copy>(from: &mut impl FilterInput, name: &str, known: &[(&str, T)]) -> Vec<T> {
    let Some(text) = from.said(name) else { return Vec::new() };
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim) {
        match known.iter().find(|(known, _)| *known == word) {
            Some((_, meant)) => all.push(*meant),
            None => {
                let known: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                from.refuse(name, format!("must be one of {}, not `{word}`", known.join(", ")));
            }
        }
    }
    all
}

fn standings(from: &mut impl FilterInput) -> Vec<LetterState> {
    let asked = words(from, "standing", &LetterState::ALL.map(|standing| (standing.word(), standing)));
    let replayed = words(from, "replayed", &[("true", &REPLAYED[..]), ("false", &FRESH[..])]);
    match (&asked[..], replayed.first()) {
        (_, None) => asked,
        ([], Some(replayed)) => replayed.to_vec(),
        (asked, Some(replayed)) => {
            let both: Vec<LetterState> =
                asked.iter().copied().filter(|standing| replayed.contains(standing)).collect();
            if both.is_empty() {
                from.refuse("replayed", "matches nothing together with `standing`; omit one of them".into());
            }
            both
        }
    }
}

fn text(from: &mut impl FilterInput) -> Option<String> {
    let text = from.said("q")?;
    if text.chars().count() > TEXT_MAX {
        from.refuse("q", format!("must have at most {TEXT_MAX} characters"));
    }
    if !text.chars().any(char::is_alphanumeric) {
        from.refuse("q", "must contain a word".into());
    }
    Some(text)
}
