//! One section of a file, read by the table: the settings of a guard or of a base as they are written, and nothing else.

use super::assume::{Assumed, guesses};
use super::dialect::flat;
use super::nearest::{elsewhere, is_same, nearest};
use super::schema::{self, CHOICES, Key, Kind, Section, TABLE, Way};
use super::tree::{Content, Entry, Node, join, shortened};
use super::value::{self, Value, Wrong};
use super::{Origin, Place, Problem, yaml};

/// What is found while reading.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Report {
    pub(super) fn wrong(&mut self, place: &Place, path: impl Into<String>, wrong: Wrong) {
        let problem = Problem::new(place, path.into(), wrong.reason);
        self.problems.push(if wrong.remedy.is_empty() { problem } else { problem.with_remedy(wrong.remedy) });
    }

    pub(super) fn warn(&mut self, place: &Place, path: impl Into<String>, reason: String) {
        self.warnings.push(Problem::new(place, path.into(), reason));
    }
}

/// One setting.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// Its name in another dialect, if it was written there.
    pub(super) written: Option<&'static str>,
}

impl Item {
    pub(super) fn new(path: &str, value: Value, origin: Origin, written: Option<&'static str>) -> Self {
        let key =
            schema::find(path).expect("the paths in the source stand in the table; a test asks for each");
        Item { key, value, origin, written }
    }

    fn is(&self, way: &Way) -> bool {
        let is_word = |word: &&'static str| self.value == Value::Word(word);
        self.key.path == way.0 && (way.1.is_empty() || way.1.iter().any(is_word))
    }

    /// Which way of a choice it takes, if any.
    pub(super) fn way(&self, choice: &schema::Choice) -> Option<usize> {
        choice.ways.iter().position(|ways| ways.iter().any(|way| self.is(way)))
    }
}

/// The settings of one section in one file.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// In the order of the file.
    pub(super) items: Vec<Item>,
    /// The bases that it names.
    pub(super) extends: Option<Vec<(String, Place)>>,
    /// The settings that are written and can't be read; their values mean nothing.
    pub(super) unread: Vec<Item>,
    /// What the unread settings may have been meant to be: small values and large ones.
    pub(super) guesses: [Vec<Item>; 2],
}

impl Layer {
    /// Everything that is written, readable or not.
    pub(super) fn written(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().chain(&self.unread)
    }

    /// The settings, with guesses for those that can't be read.
    pub(super) fn assuming(&self, assumed: Assumed) -> impl DoubleEndedIterator<Item = &Item> {
        let guesses = assumed.index().map_or(&[][..], |index| &self.guesses[index]);
        self.items.iter().chain(guesses)
    }

    pub(super) fn cannot_read(&mut self, key: &'static Key, place: &Place, written: Option<&'static str>) {
        let item = |value| Item { key, value, origin: Origin::Written(place.clone()), written };
        self.unread.push(item(Value::None));
        for (guesses, value) in self.guesses.iter_mut().zip(guesses(key.kind).into_iter().flatten()) {
            guesses.push(item(value));
        }
    }
}

/// Reads a guard or a base. `shown` is its path in the file.
pub(super) fn read(node: &Node, shown: &str, report: &mut Report) -> Layer {
    let mut reader = Reader { layer: Layer::default(), report };
    match &node.content {
        Content::Map(entries) => reader.section("", entries, shown),
        _ if node.is_null() => {}
        _ => {
            let colon = node.text().is_some_and(|text| text.contains(':'));
            let remedy = if colon {
                "a space is missing after the `:`"
            } else {
                "write settings below it, or `{}` for none"
            };
            let wrong = Wrong::new(format!("{} stands here", node.noun()), remedy);
            reader.report.wrong(&node.place, shown, wrong);
        }
    }
    let Reader { layer, report } = reader;
    flat::refuse_mixtures(&layer, shown, report);
    refuse_both_ways(&layer, shown, report);
    layer
}

struct Reader<'a> {
    layer: Layer,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn section(&mut self, section: &'static str, entries: &[Entry], shown: &str) {
        let mut seen: Vec<(&'static str, &Entry)> = Vec::new();
        for entry in entries {
            let path = join(shown, &entry.key);
            if section.is_empty() && flat::read(entry, &path, &mut self.layer, self.report) {
                continue;
            }
            let Some(key) = child(section, &entry.key) else {
                if let Some(key) = meant(section, &entry.key) {
                    self.layer.cannot_read(key, &entry.place, None);
                }
                self.report.wrong(&entry.place, path, unknown(section, &entry.key));
                continue;
            };
            // The same key in the same letters has been found before, as a mistake of the format.
            match seen.iter().find(|(path, _)| *path == key.path) {
                Some((_, first)) if first.key != entry.key => {
                    let line = first.place.line().unwrap_or_default();
                    let reason = format!("this is `{}` of line {line} once more", first.key);
                    self.report.wrong(&entry.place, path, Wrong::new(reason, "take one of them out"));
                }
                Some(_) => {}
                None => {
                    seen.push((key.path, entry));
                    self.setting(key, entry, &path);
                }
            }
        }
    }

    fn setting(&mut self, key: &'static Key, entry: &Entry, path: &str) {
        let item = |value| Item { key, value, origin: Origin::Written(entry.place.clone()), written: None };
        match (key.kind, &entry.value.content) {
            (Kind::Bases, _) => match bases(&entry.value) {
                Ok(names) => self.layer.extends = Some(names),
                Err(wrong) => self.report.wrong(&entry.value.place, path, wrong),
            },
            (Kind::Section(_), Content::Map(entries)) => {
                self.layer.items.push(item(Value::On));
                self.section(key.path, entries, path);
            }
            (Kind::Section(_), _) if entry.value.is_null() => self.layer.items.push(item(Value::On)),
            // Every wrong word of a list has its own place.
            (Kind::Words(_), Content::List(items)) if !items.is_empty() => {
                let mut words = Vec::new();
                for one in items {
                    match value::read(key, one) {
                        Ok(Value::Words(more)) => words.extend(more),
                        Ok(_) => {}
                        Err(wrong) => {
                            self.layer.cannot_read(key, &entry.place, None);
                            self.report.wrong(&one.place, path, wrong);
                        }
                    }
                }
                self.layer.items.push(item(Value::Words(words)));
            }
            _ => match value::read(key, &entry.value) {
                Ok(value) => self.layer.items.push(item(value)),
                Err(wrong) => {
                    self.layer.cannot_read(key, &entry.place, None);
                    self.report.wrong(&entry.value.place, path, wrong);
                }
            },
        }
    }
}

/// The first part of a path.
pub(super) fn policy_of(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// The setting of this name in a section, however it is spelt.
pub(super) fn child(section: &str, name: &str) -> Option<&'static Key> {
    let name = if section.is_empty() && is_same(name, "base_config") { "extends" } else { name };
    schema::children(section).find(|key| is_same(key.name(), name))
}

/// The setting that an unknown key was meant to be, as far as one can tell.
pub(super) fn meant(section: &str, name: &str) -> Option<&'static Key> {
    let siblings = || schema::children(section).map(Key::name);
    let near = nearest(name, siblings()).or_else(|| elsewhere(name, siblings()))?;
    child(section, near)
}

/// What to say about a key that is not in the table.
pub(super) fn unknown(section: &str, name: &str) -> Wrong {
    if name == "<<" {
        return yaml::no_merging();
    }
    let siblings: Vec<&str> = schema::children(section).map(Key::name).collect();
    if is_same(name, "enabled") && !section.is_empty() {
        let remedy = format!("a section that is there is on; write `{section}: none` to switch it off");
        return Wrong::new("no such key", remedy);
    }
    let near = nearest(name, siblings.iter().copied()).or_else(|| elsewhere(name, siblings.iter().copied()));
    if let Some(near) = near {
        return Wrong::new("no such key", format!("did you mean `{near}`?"));
    }
    // One section too high, or in the wrong one.
    let below =
        TABLE.iter().filter(|key| !section.is_empty() && key.parent().starts_with(&format!("{section}.")));
    let leaf = |key: &&Key| is_same(key.name(), name) || elsewhere(name, [key.name()]).is_some();
    if let Some(key) = below.clone().find(leaf) {
        return Wrong::new("no such key", format!("did you mean `{}`?", &key.path[section.len() + 1..]));
    }
    let stray = TABLE.iter().find(|key| is_same(key.name(), name) && !key.parent().is_empty());
    let keys = value::listed(&siblings);
    match stray {
        Some(key) => Wrong::new("no such key here", format!("it belongs below `{}`", key.parent())),
        None if section.is_empty() => Wrong::new("no such key", format!("there are {keys}")),
        None => Wrong::new("no such key", format!("`{section}` has {keys}")),
    }
}

/// `standard`, `a, b` or `[a, b]`.
pub(super) fn bases(node: &Node) -> Result<Vec<(String, Place)>, Wrong> {
    let wrong = |node: &Node| {
        Wrong::new(format!("{} stands here", node.noun()), "write the name of a base, or a list")
    };
    match &node.content {
        Content::List(items) => items
            .iter()
            .map(|item| {
                item.text().map(|name| (name.to_owned(), item.place.clone())).ok_or_else(|| wrong(item))
            })
            .collect(),
        _ => {
            let names = node.text().ok_or_else(|| wrong(node))?;
            let names = names.split(',').map(|name| (name.trim().to_owned(), node.place.clone()));
            Ok(names.collect())
        }
    }
}

/// Names stand in logs, metrics and keys of files, which are not made for more.
const NAME_MAX: usize = 100;

/// More than this are not read.
pub(super) const NAMES_MAX: usize = 10_000;

/// Says that there are too many guards or bases.
pub(super) fn refuse_crowd(entries: &[Entry], place: &Place, section: &str, report: &mut Report) {
    if entries.len() > NAMES_MAX {
        let reason = format!("there are more than {NAMES_MAX} of them");
        let wrong = Wrong::new(reason, "where each key needs a guard, write one with `keys_max`");
        report.wrong(place, section, wrong);
    }
}

/// Says what is wrong with the name of a guard or a base.
pub(super) fn refuse_name(entry: &Entry, section: &str, report: &mut Report) {
    let long = entry.key.chars().count() > NAME_MAX;
    if long || entry.key.chars().any(char::is_control) {
        let wrong = Wrong::new(
            format!("`{}` is no name", shortened(&entry.key)),
            format!("write at most {NAME_MAX} characters that can be seen"),
        );
        report.wrong(&entry.place, section, wrong);
    }
}

/// Two ways to say one thing in one section.
pub(super) fn refuse_both_ways(layer: &Layer, shown: &str, report: &mut Report) {
    for choice in CHOICES {
        let of = |way| layer.written().find(move |item| item.way(choice) == Some(way));
        if let (Some(one), Some(other)) = (of(0), of(1)) {
            let (first, second) =
                if one.origin.place() <= other.origin.place() { (one, other) } else { (other, one) };
            let reason = format!("it excludes `{}`: {}", name_of(first), choice.why);
            let path = join(shown, second.key.path);
            if let Some(place) = second.origin.place() {
                report.wrong(place, path, Wrong::new(reason, "keep one of them"));
            }
        }
    }
}

/// As the user wrote it.
pub(super) fn name_of(item: &Item) -> &str {
    item.written.unwrap_or(item.key.name())
}

/// Whether a section stands for itself, without settings.
pub(super) fn is_grouping(key: &Key) -> bool {
    key.kind == Kind::Section(Section::Part)
}

/// So many names are compared with one that is not there: a file may have thousands of both.
const NEAR_MAX: usize = 200;

/// A name that is not there, with the one that may have been meant.
pub(super) fn unknown_name<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Wrong {
    let reason = format!("there is no {what} `{}`", shortened(name));
    let remedy = match nearest(name, known.clone().take(NEAR_MAX)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let names: Vec<&str> = known.take(20).collect();
            if names.is_empty() {
                format!("write it under `{}`", if what == "base" { "configs" } else { "guards" })
            } else {
                format!("there are {}", value::listed(&names))
            }
        }
    };
    Wrong::new(reason, remedy)
}
