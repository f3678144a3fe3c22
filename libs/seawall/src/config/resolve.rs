//! From layers to the settings of one guard: defaults, preset, bases, what it says itself, the environment.

use std::collections::HashSet;

use super::Origin;
use super::dialect::flat;
use super::layer::{Item, Layer, Report, is_grouping, unknown_name};
use super::preset;
use super::schema::{CHOICES, Choice, Key, Kind, Section, TABLE};
use super::tree::join;
use super::value::{self, Value, Wrong};
use super::{Place, Problem};

/// Longer chains are a mistake, and two bases that each extend two others double with every step.
pub(super) const LAYERS_MAX: usize = 100;

/// A guard or a base, with one layer for each file that says something about it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    /// Like `guards.payments`; empty for a policy that stands alone.
    pub(super) path: String,
    pub(super) place: Place,
    /// What another format says about it; it lies under its bases too, so that a guard in our own words is over it.
    pub(super) ground: Option<Layer>,
    pub(super) layers: Vec<Layer>,
}

/// Everything that the files say, before anything is put together.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) configs: Vec<Named>,
    pub(super) guards: Vec<Named>,
}

impl Named {
    /// The bases that it names; a later file replaces what an earlier one says.
    fn extends(&self) -> &[(String, Place)] {
        self.layers.iter().rev().find_map(|layer| layer.extends.as_deref()).unwrap_or_default()
    }
}

/// The entry of this name, which is made if it is not there yet.
pub(super) fn entry<'a>(all: &'a mut Vec<Named>, section: &str, name: &str, place: &Place) -> &'a mut Named {
    let at = all.iter().position(|named| named.name == name).unwrap_or_else(|| {
        let path = join(section, name);
        all.push(Named { name: name.into(), path, place: place.clone(), ground: None, layers: Vec::new() });
        all.len() - 1
    });
    &mut all[at]
}

impl Book {
    fn base(&self, name: &str) -> Option<&Named> {
        self.configs.iter().find(|named| named.name == name)
    }

    /// Names that lead nowhere or in a circle, each said once.
    pub(super) fn check_bases(&self, report: &mut Report) {
        for named in self.configs.iter().chain(&self.guards) {
            for (name, place) in named.extends().iter().filter(|(name, _)| self.base(name).is_none()) {
                let known = self.configs.iter().map(|base| base.name.as_str());
                report.wrong(place, join(&named.path, "extends"), unknown_name("base", name, known));
            }
        }
        for (index, named) in self.configs.iter().enumerate() {
            let mut trail = vec![named.name.as_str()];
            // A circle is reported from the base in it that comes first.
            let earlier = |name: &str| self.configs[..index].iter().any(|base| base.name == name);
            if let Some(place) = self.circle(&mut trail, &mut HashSet::new(), &earlier) {
                let reason = format!("these bases extend each other: {}", trail.join(" → "));
                let wrong = Wrong::new(reason, "take one `extends` out");
                report.wrong(&place, join(&named.path, "extends"), wrong);
            }
        }
    }

    /// Follows the bases from the end of the trail until they come back to its beginning.
    fn circle<'a>(
        &'a self,
        trail: &mut Vec<&'a str>,
        seen: &mut HashSet<&'a str>,
        earlier: &dyn Fn(&str) -> bool,
    ) -> Option<Place> {
        let last = self.base(trail.last()?)?;
        for (name, place) in last.extends() {
            if Some(&name.as_str()) == trail.first() {
                trail.push(name);
                return Some(place.clone());
            }
            if !seen.insert(name) || earlier(name) || trail.len() > LAYERS_MAX {
                continue;
            }
            trail.push(name);
            // The first step of a circle is where a reader looks.
            if self.circle(trail, seen, earlier).is_some() {
                return Some(place.clone());
            }
            trail.pop();
        }
        None
    }

    /// The layers of a guard from the lowest to the highest.
    fn stack<'a>(&'a self, named: &'a Named, report: &mut Report) -> Vec<&'a Layer> {
        let mut trail = Vec::new();
        let mut stack: Vec<&Layer> = named.ground.iter().collect();
        if !self.climb(named, &mut trail, &mut stack) {
            let wrong =
                Wrong::new(format!("more than {LAYERS_MAX} bases lie under it"), "extend fewer of them");
            report.wrong(&named.place, named.path.clone(), wrong);
        }
        stack
    }

    fn climb<'a>(&'a self, named: &'a Named, trail: &mut Vec<&'a str>, stack: &mut Vec<&'a Layer>) -> bool {
        let mut fits = true;
        for base in named.extends().iter().filter_map(|(name, _)| self.base(name)) {
            // Circles have been reported.
            if trail.contains(&base.name.as_str()) {
                continue;
            }
            trail.push(&base.name);
            fits = fits && stack.len() < LAYERS_MAX && self.climb(base, trail, stack);
            trail.pop();
        }
        stack.extend(&named.layers);
        fits
    }

    /// The settings of a guard, its defaults included, and the policies that could not be read in full.
    pub(super) fn settings(&self, named: &Named, report: &mut Report) -> (Settings, Vec<&'static str>) {
        let stack = self.stack(named, report);
        if let Some(item) = flat::lonely_timeout(&stack)
            && let Some(place) = item.origin.place()
        {
            let wrong = Wrong::new(
                "alone it could mean either timeout",
                format!("write `attempt_timeout: {0}` or `call_timeout: {0}`", item.value),
            );
            report.wrong(place, join(&named.path, "timeout"), wrong);
        }
        let preset = stack.iter().rev().find_map(|layer| {
            layer.items.iter().rev().find_map(|item| match item.value {
                Value::Word(word) if item.key.path == "preset" => Some(word),
                _ => None,
            })
        });
        let mut settings = Settings::default();
        for item in flat::implied(&stack, preset.is_some()) {
            settings.put(item);
        }
        for item in preset.into_iter().flat_map(preset::items) {
            settings.put(item);
        }
        for item in stack.iter().flat_map(|layer| &layer.items) {
            settings.put(item.clone());
        }
        settings.fill_in();
        (settings, stack.iter().flat_map(|layer| layer.tainted.clone()).collect())
    }
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

    fn take_out(&mut self, which: impl Fn(&Item) -> bool) {
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
