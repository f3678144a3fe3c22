//! Files for resilience4j in Spring Boot: `resilience4j:` with its modules, their `configs` and `instances`.
//!
//! They keep the meaning that they have there: bare numbers are milliseconds, `configs.default` lies under what names no
//! base, and where a key is absent the default of resilience4j holds, not ours. All instances of
//! one name make one guard.

mod keys;
mod slow;
mod translate;

pub(in crate::config) use slow::{leave_out_slow_calls, warn_of_slow_calls};

use std::collections::HashMap;

use keys::{Kind, Known, MODULES, Module};

use super::super::assume::Assumed;
use super::super::book::{Book, LAYERS_MAX, entry};
use super::super::layer::{NAMES_MAX, Report, refuse_crowd, refuse_name, unknown_name};
use super::super::nearest::{is_same, nearest, squash};
use super::super::time::Bare;
use super::super::tree::{Content, Entry, Node, join};
use super::super::value::{self, Value, Wrong, listed};
use super::super::{Place, Problem};

const DIALECT: &str = "resilience4j";

/// What all files say below `resilience4j`.
#[derive(Debug, Default)]
pub(in crate::config) struct Resilience4j<'a> {
    sections: Vec<Section<'a>>,
    /// Where each stands: its module, whether it is an instance, and its name.
    places: HashMap<(&'static str, bool, &'a str), usize>,
}

/// One base or one instance of one module.
#[derive(Debug)]
struct Section<'a> {
    module: &'static Module,
    is_instance: bool,
    name: &'a str,
    /// Like `resilience4j.retry.instances.payments`.
    path: String,
    place: Place,
    settings: Vec<Setting>,
    base: Option<(String, Place)>,
    /// What the settings that can't be read may have been meant to be: small values and large ones.
    guesses: [Vec<Setting>; 2],
}

#[derive(Clone, Debug)]
struct Setting {
    name: &'static str,
    value: Value,
    place: Place,
    path: String,
}

impl<'a> Resilience4j<'a> {
    /// Whether a key at the top of a file is ours. Spring reads `resilience4j.retry:` as well.
    pub(in crate::config) fn knows(key: &str) -> bool {
        key == DIALECT || key.strip_prefix(DIALECT).is_some_and(|rest| rest.starts_with('.'))
    }

    pub(in crate::config) fn take(&mut self, top: &'a Entry, report: &mut Report) {
        match top.key.split_once('.') {
            Some((_, module)) => self.module(module, top, &top.key, report),
            None => {
                for entry in entries_of(&top.value, DIALECT, report) {
                    self.module(&entry.key, entry, &join(DIALECT, &entry.key), report);
                }
            }
        }
    }

    fn module(&mut self, name: &str, entry: &'a Entry, path: &str, report: &mut Report) {
        let Some(module) = MODULES.iter().find(|module| is_same(module.name, name)) else {
            if is_same(name, "thread-pool-bulkhead") {
                let reason = "not read: there are no thread pools here; write a `bulkhead`";
                return report.warn(&entry.place, path, reason.into());
            }
            if ["micrometer", "scheduled", "metrics"].iter().any(|known| is_same(known, name)) {
                let reason = "not read: it is about threads and meters of Spring; see `metrics` and `tracing` for ours";
                return report.warn(&entry.place, path, reason.into());
            }
            let names = MODULES.iter().map(|module| module.name);
            let mut wrong = unknown_name("module", name, names);
            wrong.reason = "no such module".into();
            return report.wrong(&entry.place, path, wrong);
        };
        for part in entries_of(&entry.value, path, report) {
            let path = join(path, &part.key);
            match squash(&part.key).as_str() {
                "instances" | "backends" | "limiters" => self.sections(module, true, part, &path, report),
                "configs" => self.sections(module, false, part, &path, report),
                key if key.ends_with("aspectorder") || matches!(key, "metrics" | "tags") => {
                    let reason = "not read: it is about Spring; the order of a guard's policies is fixed";
                    report.warn(&part.place, path, reason.into());
                }
                _ => {
                    let near = nearest(&part.key, ["instances", "configs"]);
                    let remedy = format!("did you mean `{}`?", near.unwrap_or("instances"));
                    report.wrong(&part.place, path, Wrong::new("no such key", remedy));
                }
            }
        }
    }

    fn sections(
        &mut self,
        module: &'static Module,
        is_instance: bool,
        part: &'a Entry,
        path: &str,
        report: &mut Report,
    ) {
        let entries = entries_of(&part.value, path, report);
        refuse_crowd(entries, &part.value.place, path, report);
        for entry in entries.iter().take(NAMES_MAX) {
            refuse_name(entry, path, report);
            let path = join(path, &entry.key);
            // Spring writes names with dots in brackets.
            let name =
                entry.key.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&entry.key);
            let at = *self.places.entry((module.name, is_instance, name)).or_insert_with(|| {
                self.sections.push(Section {
                    module,
                    is_instance,
                    name,
                    path: path.clone(),
                    place: entry.place.clone(),
                    settings: Vec::new(),
                    base: None,
                    guesses: Default::default(),
                });
                self.sections.len() - 1
            });
            for setting in entries_of(&entry.value, &path, report) {
                self.sections[at].take(setting, &join(&path, &setting.key), report);
            }
        }
    }

    fn config(&self, module: &Module, name: &str) -> Option<&Section<'a>> {
        self.places.get(&(module.name, false, name)).map(|at| &self.sections[*at])
    }

    /// What lies under a section that names no base, as resilience4j 2 has it. A circuit breaker is the exception: its
    /// instance takes the base of its own name before `default`, and its bases take nothing.
    fn unsaid_base(&self, section: &Section<'a>) -> Option<&Section<'a>> {
        let default = || self.config(section.module, "default");
        if section.module.policy == "breaker" {
            let own = || self.config(section.module, section.name).or_else(default);
            return if section.is_instance { own() } else { None };
        }
        if section.name == "default" { None } else { default() }
    }

    /// The settings of an instance over those of its bases.
    fn resolved(&self, instance: &Section<'a>, assumed: Assumed, report: &mut Report) -> Vec<Setting> {
        let (mut chain, mut section) = (vec![instance], instance);
        loop {
            let base = match &section.base {
                Some((name, place)) => {
                    let base = self.config(section.module, name);
                    if base.is_none() {
                        let known = self
                            .sections
                            .iter()
                            .filter(|other| !other.is_instance && other.module.name == section.module.name);
                        let wrong = unknown_name("base", name, known.map(|section| section.name));
                        report.wrong(place, join(&section.path, "baseConfig"), wrong);
                    }
                    base
                }
                None => self.unsaid_base(section),
            };
            let Some(base) = base else { break };
            if chain.len() > LAYERS_MAX {
                let wrong =
                    Wrong::new(format!("more than {LAYERS_MAX} bases lie under it"), "extend fewer of them");
                report.wrong(&instance.place, instance.path.clone(), wrong);
                break;
            }
            if let Some(begin) = chain.iter().position(|other| std::ptr::eq(*other, base)) {
                let mut names: Vec<_> = chain[begin..].iter().map(|section| section.name).collect();
                names.push(base.name);
                let wrong = Wrong::new(
                    format!("these bases extend each other: {}", names.join(" → ")),
                    "take one `baseConfig` out",
                );
                report.wrong(&base.place, base.path.clone(), wrong);
                break;
            }
            chain.push(base);
            section = base;
        }
        let mut settings: Vec<Setting> = Vec::new();
        for setting in chain.iter().rev().flat_map(|section| section.assuming(assumed)) {
            settings.retain(|other| other.name != setting.name);
            settings.push(setting.clone());
        }
        settings
    }

    /// Lays each instance under the guard of its name.
    pub(in crate::config) fn translate(&self, book: &mut Book, report: &mut Report) {
        let mut instances: Vec<_> = self.sections.iter().filter(|section| section.is_instance).collect();
        instances.sort_by(|a, b| a.place.cmp(&b.place));
        // In the order of the file, those of one name together.
        let mut groups: Vec<Vec<&Section<'a>>> = Vec::new();
        let mut group_of = HashMap::new();
        for instance in instances {
            let at = *group_of.entry(instance.name).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(instance);
        }
        for parts in groups {
            let Some(first) = parts.first() else { continue };
            let guard = entry(&mut book.guards, "guards", first.name, &first.place);
            let layer = |assumed, report: &mut Report| {
                let resolved: Vec<_> = parts
                    .iter()
                    .map(|part| (part.module.name, part.place.clone(), self.resolved(part, assumed, report)))
                    .collect();
                translate::layer(&resolved, guard, report)
            };
            let mut ground = layer(Assumed::Absent, report);
            if self.sections.iter().any(|section| !section.guesses[0].is_empty()) {
                let guess = |assumed| layer(assumed, &mut Report::default()).items;
                ground.guesses = [guess(Assumed::Small), guess(Assumed::Large)];
                // Says that something was not read; which of them it was is known to the sections only.
                ground.unread = ground.guesses[0].clone();
            }
            guard.ground = Some(ground);
        }
    }
}

impl Section<'_> {
    /// The settings, with guesses for those that can't be read.
    fn assuming(&self, assumed: Assumed) -> impl Iterator<Item = &Setting> {
        let guesses = assumed.index().map_or(&[][..], |index| &self.guesses[index]);
        self.settings.iter().chain(guesses)
    }

    fn cannot_read(&mut self, known: &Known, entry: &Entry, path: &str) {
        for (guesses, value) in self.guesses.iter_mut().zip(known.guesses().into_iter().flatten()) {
            let (name, place) = (known.name, entry.place.clone());
            guesses.push(Setting { name, value, place, path: path.to_owned() });
        }
    }

    fn take(&mut self, entry: &Entry, path: &str, report: &mut Report) {
        let keys = || self.module.keys.iter().chain(keys::EVERYWHERE);
        let Some(known) = keys().find(|known| is_same(known.name, &entry.key)) else {
            let near = nearest(&entry.key, keys().map(|known| known.name));
            if let Some(meant) = keys().find(|known| Some(known.name) == near) {
                self.cannot_read(meant, entry, path);
            }
            let remedy = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let keys = self.module.keys.iter().filter(|known| !matches!(known.kind, Kind::Java(_)));
                    let names: Vec<_> = keys.map(|known| known.name).collect();
                    format!("`{}` has {}", self.module.name, listed(&names))
                }
            };
            return report.wrong(&entry.place, path, Wrong::new("no such key", remedy));
        };
        // The same key in the same letters has been found before, as a mistake of the format.
        let other = |setting: &&Setting| setting.name == known.name && setting.place.is_beside(&entry.place);
        if let Some(first) = self.settings.iter().find(other).filter(|first| first.path != path) {
            let line = first.place.line().unwrap_or_default();
            let reason = format!("this is `{}` of line {line} once more", known.name);
            return report.wrong(&entry.place, path, Wrong::new(reason, "take one of them out"));
        }
        match read(known, &entry.value) {
            Ok(Some(value)) => {
                // A later file replaces what an earlier one said.
                self.settings.retain(|setting| setting.name != known.name);
                self.settings.push(Setting {
                    name: known.name,
                    value,
                    place: entry.place.clone(),
                    path: path.to_owned(),
                });
            }
            Ok(None) => match known.kind {
                Kind::Base => {
                    self.base = entry.value.text().map(|name| (name.into(), entry.value.place.clone()));
                }
                Kind::Java(instead) => report.warnings.push(Problem::new(
                    &entry.place,
                    path.to_owned(),
                    format!("not read: {instead}"),
                )),
                _ => {}
            },
            Err(wrong) => {
                self.cannot_read(known, entry, path);
                report.wrong(&entry.value.place, path, wrong);
            }
        }
    }
}

/// The value of a key, or nothing for one that is not a setting.
fn read(known: &Known, node: &Node) -> Result<Option<Value>, Wrong> {
    if matches!(known.kind, Kind::Java(_)) {
        return Ok(None);
    }
    if matches!(known.kind, Kind::Names) {
        let is_empty = matches!(&node.content, Content::List(items) if items.is_empty());
        return if is_empty { Ok(None) } else { value::names(node).map(Some) };
    }
    let text =
        node.text().ok_or_else(|| Wrong::new(format!("{} stands here", node.noun()), known.wanted()))?;
    match known.kind {
        Kind::Base | Kind::Java(_) | Kind::Names => Ok(None),
        Kind::Time => time(text).map(Value::Time).map(Some),
        Kind::Share => value::share(text).map(Value::Share).map(Some),
        Kind::Count => value::count(text).map(Value::Count).map(Some),
        Kind::Number => value::number(text).map(Value::Number).map(Some),
        Kind::Switch => value::switch(text).map(Value::Switch).map(Some),
        Kind::Word(words) => value::word(text, words).map(Value::Word).map(Some),
    }
}

/// `30000`, `30s` or `PT30S`.
fn time(text: &str) -> Result<std::time::Duration, Wrong> {
    let upper = text.to_ascii_uppercase();
    let Some(iso) = upper.strip_prefix('P') else { return super::super::time::read(text, Bare::Millis) };
    let (days, rest) = iso.split_once('T').unwrap_or((iso, ""));
    let ours = format!("{days}{rest}").to_ascii_lowercase();
    // Before the `T` stand days only: months have no length.
    let known = days.is_empty() || days.ends_with('D');
    let time = if known { super::super::time::read(&ours, Bare::Refused).ok() } else { None };
    time.ok_or_else(|| {
        Wrong::new(format!("`{text}` is not a duration"), "write one like `PT30S`, `30s` or `30000`")
    })
}

/// The entries of a section; nothing at all is an empty one.
fn entries_of<'a>(node: &'a Node, path: &str, report: &mut Report) -> &'a [Entry] {
    match &node.content {
        Content::Map(entries) => entries,
        _ if node.is_null() => &[],
        _ => {
            let wrong = Wrong::new(format!("{} stands here", node.noun()), "write its keys below it");
            report.wrong(&node.place, path, wrong);
            &[]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{millis, secs};

    #[test]
    fn eng_12_durations_of_resilience4j_are_milliseconds_or_carry_a_unit() {
        assert_eq!(time("30000"), Ok(secs(30)));
        assert_eq!(time("30s"), Ok(secs(30)));
        assert_eq!(time("PT30S"), Ok(secs(30)));
        assert_eq!(time("pt1m30.5s"), Ok(millis(90_500)));
        assert_eq!(time("P1DT1H"), Ok(secs(25 * 3_600)));
        for wrong in ["P1M", "PT", "P", "PTS", "-5", "soon", "P1Y2D", "PT5X"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
