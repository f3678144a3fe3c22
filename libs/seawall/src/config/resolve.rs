//! From layers to the settings of one guard: each laid over the one before, with preset and defaults under them.

use super::Origin;
use super::assume::Assumed;
use super::book::Named;
use super::dialect::{flat, resilience4j};
use super::layer::{Item, Layer, is_grouping};
use super::preset;
use super::schema::{CHOICES, Choice, Key, Kind, Section, TABLE};
use super::tree::join;
use super::value::{self, Value};
use super::{Place, Problem, build};
use crate::timeout::CALL_TIMEOUT;

/// The settings that a stack of layers gives, from the lowest to the highest, with the defaults under them.
pub(super) fn settings(stack: &[&Layer], assumed: Assumed) -> Settings {
    let preset = stack.iter().rev().find_map(|layer| {
        layer.assuming(assumed).rev().find_map(|item| match item.value {
            Value::Word(word) if item.key.path == "preset" => Some(word),
            _ => None,
        })
    });
    let mut settings = Settings::default();
    for item in flat::implied(stack, preset.is_some()) {
        settings.put(item);
    }
    for item in preset.into_iter().flat_map(preset::items) {
        settings.put(item);
    }
    for item in stack.iter().flat_map(|layer| layer.assuming(assumed)) {
        settings.put(item.clone());
    }
    settings.fill_in();
    settings.leave_time_for_waits();
    resilience4j::leave_out_slow_calls(&mut settings);
    settings
}

/// The settings of one guard, in the order of the table.
#[derive(Clone, Debug)]
pub(super) struct Settings(Vec<Option<Item>>);

impl Default for Settings {
    fn default() -> Self {
        Settings(vec![None; TABLE.len()])
    }
}

impl Settings {
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.0.iter().flatten()
    }

    pub(super) fn get(&self, path: &str) -> Option<&Item> {
        self.items().find(|item| item.key.path == path)
    }

    /// Where a setting was written, or the nearest section around it.
    pub(super) fn place_of(&self, path: &str) -> Option<&Place> {
        let own = self.get(path).and_then(|item| item.origin.place());
        own.or_else(|| path.rsplit_once('.').and_then(|(parent, _)| self.place_of(parent)))
    }

    /// Lays one setting over what is there.
    fn put(&mut self, item: Item) {
        if item.value == Value::Off {
            let below = format!("{}.", item.key.path);
            self.take_out(|other| other.key.path.starts_with(&below));
        } else {
            self.switch_on_around(&item);
        }
        for choice in CHOICES {
            if let Some(way) = item.way(choice) {
                self.take_out(|other| other.way(choice) == Some(1 - way));
            }
        }
        let at = index_of(item.key);
        self.0[at] = Some(item);
    }

    /// A setting in a section means that the section is on.
    fn switch_on_around(&mut self, item: &Item) {
        let mut key = item.key;
        while let Some(parent) = super::schema::find(key.parent()) {
            let slot = &mut self.0[index_of(parent)];
            if slot.as_ref().is_none_or(|section| section.value == Value::Off) {
                *slot = Some(Item { key: parent, value: Value::On, ..item.clone() });
            }
            key = parent;
        }
    }

    pub(super) fn take_out(&mut self, which: impl Fn(&Item) -> bool) {
        for slot in &mut self.0 {
            if slot.as_ref().is_some_and(&which) {
                *slot = None;
            }
        }
    }

    pub(super) fn is_on(&self, section: &str) -> bool {
        section.is_empty() || self.get(section).is_some_and(|item| item.value == Value::On)
    }

    /// Defaults of all sections that are on.
    fn fill_in(&mut self) {
        for key in TABLE.iter().filter(|key| matches!(key.kind, Kind::Section(_))) {
            let comes_along = is_grouping(key) || key.kind == Kind::Section(Section::On);
            if comes_along && self.get(key.path).is_none() && self.is_on(key.parent()) {
                self.fill(key, Value::On);
            }
        }
        // What is written decides between two ways, not what is filled in.
        let written = self.clone();
        for key in TABLE.iter().filter(|key| written.get(key.path).is_none() && written.is_on(key.parent())) {
            let Some(text) = key.fixed_default() else { continue };
            if written.takes(key)
                && let Ok(value) = value::of_text(key.kind, text)
            {
                self.fill(key, value);
            }
        }
    }

    /// Flat keys and presets promise so many attempts and do not say how long all of them may take. Where no attempt has a
    /// timeout either, the usual call timeout is for the attempts, and the waits between them come on top: it would end
    /// `critical` after three of its six attempts otherwise.
    fn leave_time_for_waits(&mut self) {
        let Some(attempts) = self.get("retry.max_attempts").filter(|_| self.is_on("retry")) else { return };
        let origin = match attempts.origin {
            Origin::Preset(name) => Origin::Preset(name),
            _ if flat::is_flat(attempts) || attempts.origin == Origin::Dialect(flat::DIALECT) => {
                Origin::Dialect(flat::DIALECT)
            }
            _ => return,
        };
        if self.get("call_timeout").is_some() || self.get("attempt_timeout").is_some() {
            return;
        }
        let attempts = self.count("retry.max_attempts").unwrap_or(1);
        let between = build::backoff(self).longest_total(attempts.saturating_sub(1));
        // Each attempt may have to wait for its turn and for its place.
        let waits = between.saturating_add(build::longest_queue(self).saturating_mul(attempts));
        let time = Value::Time(CALL_TIMEOUT.saturating_add(waits));
        self.put(Item::new("call_timeout", time, origin, None));
    }

    fn fill(&mut self, key: &'static Key, value: Value) {
        self.0[index_of(key)] = Some(Item { key, value, origin: Origin::Default, written: None });
    }

    /// Whether a default applies: the way that it belongs to is the one that was taken.
    fn takes(&self, key: &Key) -> bool {
        if key.path == "breaker.slow_rate" && self.get("breaker.slow_after").is_none() {
            return false;
        }
        let taken = |choice: &Choice, way: usize| self.items().any(|item| item.way(choice) == Some(way));
        CHOICES.iter().all(|choice| {
            // A word makes a way only when it is written; its key has a default on either.
            let is_in = |way: usize| choice.ways[way].iter().any(|way| way.0 == key.path && way.1.is_empty());
            (!is_in(0) || !taken(choice, 1)) && (!is_in(1) || taken(choice, 1))
        })
    }
}

fn index_of(key: &Key) -> usize {
    TABLE.iter().position(|other| other.path == key.path).unwrap_or_default()
}

/// What a plan shows: sections only where they say something that their settings do not.
pub(super) fn is_shown(item: &Item) -> bool {
    match item.key.kind {
        Kind::Section(kind) => kind == Section::On && item.value == Value::Off,
        _ => true,
    }
}

/// The builder's mistakes, at the place where the setting was written.
pub(super) fn locate(problem: &Problem, named: &Named, settings: &Settings) -> Problem {
    let path = problem.path();
    let place = settings.place_of(path).unwrap_or(&named.place);
    let written = settings.get(path).and_then(|item| item.written);
    let written = written.map_or(String::new(), |written| format!("`{written}`: "));
    let path = join(&named.path, path);
    // A guard without a name leaves a hole in the path.
    let path = path.strip_suffix("..name").map_or(path.clone(), str::to_owned);
    Problem::new(place, path, format!("{written}{}", problem.reason()))
}
