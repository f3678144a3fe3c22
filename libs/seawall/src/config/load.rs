//! Files and the environment, read and put together.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::assume::Assumed;
use super::book::{Bases, Book, Named, entry};
use super::dialect::resilience4j::{Resilience4j, warn_of_slow_calls};
use super::dialect::spring::{self, Variables};
use super::layer::{self, Layer, Report, unknown_name};
use super::nearest::nearest;
use super::problem::sort;
use super::resolve::{self, locate};
use super::source::{Format, Source, read_text};
use super::tree::{Content, Node, join};
use super::value::Wrong;
use super::{Config, ConfigError, Place, Plan, Problem, build, env};
use crate::fault::announce;

/// Where a configuration comes from: files, each laid over the one before, and the environment over all of them.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is read before `load`"]
pub struct Loader {
    sources: Vec<Source>,
    variables: Vec<(String, Vec<(String, String)>)>,
    prefixes: Vec<String>,
    /// Whether sections at the top that are not ours are left alone.
    foreign: bool,
    below: String,
    profiles: Vec<String>,
}

impl Loader {
    /// Adds a file; what it says replaces what earlier ones say, setting by setting.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.sources.push(Source::File(path.as_ref().to_owned()));
        self
    }

    /// Adds a text that is not in a file. `name` is what errors call it.
    pub fn text(mut self, name: &str, text: &str, format: Format) -> Self {
        self.sources.push(Source::Text { name: name.into(), text: text.into(), format });
        self
    }

    /// Lays the variables of the process over the files: with the prefix `SEAWALL`,
    /// `SEAWALL_GUARDS__PAYMENTS__BREAKER__COOLDOWN=60s` sets the cooldown of `payments`.
    pub fn env(mut self, prefix: &str) -> Self {
        self.prefixes.push(prefix.into());
        self
    }

    /// As [`env`](Loader::env), from these variables instead of those of the process.
    pub fn env_from<N, V>(mut self, prefix: &str, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.variables.push((prefix.into(), variables.collect()));
        self
    }

    /// The files are an application's own: what stands at their top beside `guards` and `configs` is left alone. A name that is
    /// nearly one of these is still a mistake, and inside of a guard nothing changes.
    ///
    /// ```
    /// use seawall::config::{Config, Format};
    /// let app = "server: {port: 8080}\nguards: {payments: {call_timeout: 5s}}";
    /// let config = Config::loader().text("app.yaml", app, Format::Yaml).foreign_sections().load()?;
    /// assert_eq!(config.plans().len(), 1);
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn foreign_sections(mut self) -> Self {
        self.foreign = true;
        self
    }

    /// `guards` and `configs` stand below this path in an application's own file, like `app.resilience`. What is outside of it
    /// is not looked at. Paths in reports begin with it; variables of the environment do not.
    pub fn below(mut self, path: &str) -> Self {
        self.below = path.into();
        self
    }

    /// Chooses a profile: a document after `---` with `spring.config.activate.on-profile` counts only if its profile is chosen.
    /// May be called more than once. Where it is not called, `spring.profiles.active` in the file decides.
    pub fn profile(mut self, name: &str) -> Self {
        self.profiles.push(name.into());
        self
    }

    /// Announces the names that faults of this process may [carry](crate::Fault::named), so that rules which go by them are not
    /// warned about before the first such fault.
    pub fn fault_names(self, names: impl IntoIterator<Item = &'static str>) -> Self {
        names.into_iter().for_each(announce);
        self
    }

    /// What the files hold, in a number: two that differ hold something else. A file that can't be read is a number too.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for source in &self.sources {
            if let Source::File(path) = source {
                fs::read(path).map_err(|error| error.kind()).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Reads everything, or says everything that is wrong at once.
    pub fn load(self) -> Result<Config, ConfigError> {
        let mut report = Report::default();
        let below = self.below.clone();
        let config = self.load_reporting(&mut report).and_then(|book| finish(&book, report));
        match config {
            Ok(mut config) => {
                config.warnings.iter_mut().for_each(|warning| warning.lies_below(&below));
                Ok(config)
            }
            Err(error) => Err(error.lying_below(&below)),
        }
    }

    fn load_reporting(self, report: &mut Report) -> Result<Book, ConfigError> {
        let own_file = self.foreign || !self.below.is_empty();
        let (mut documents, mut is_whole) = (Vec::new(), true);
        for (order, source) in self.sources.into_iter().enumerate() {
            match source.read(order, own_file, report) {
                Some(read) => documents.extend(read),
                None => is_whole = false,
            }
        }
        // With half of the text missing, everything after this would be noise.
        if !is_whole {
            return Err(ConfigError::in_files(std::mem::take(&mut report.problems)));
        }
        let variables = spring::has_placeholders(&documents).then(|| match self.variables.as_slice() {
            [] => env::of_process(),
            given => given.iter().flat_map(|(_, variables)| variables.clone()).collect(),
        });
        let mut variables = Variables::new(variables.unwrap_or_default());
        documents = spring::choose(documents, &self.profiles, &variables, report);
        documents.iter().for_each(|document| variables.add(document));
        let beginning = documents.first().map(|document| document.place.clone());
        let mut trees: Vec<_> = documents.into_iter().filter_map(|tree| tree.below(&self.below)).collect();
        trees.iter_mut().for_each(|tree| spring::replace(tree, &variables, report));
        let (mut book, mut foreign) = (Book::default(), Resilience4j::default());
        for tree in &trees {
            document(tree, self.foreign, &mut book, &mut foreign, report);
        }
        foreign.translate(&mut book, report);
        if let Some(place) = beginning.filter(|_| book.guards.is_empty()) {
            let section = join(&self.below, "guards");
            report.warn(&place, "", format!("there is no guard in it; write one below `{section}`"));
        }
        for prefix in self.prefixes {
            env::lay_over(&prefix, env::of_process(), &mut book, report);
        }
        for (prefix, variables) in self.variables {
            env::lay_over(&prefix, variables, &mut book, report);
        }
        Ok(book)
    }
}

/// One guard alone: what stands below its name in a file. Nothing in it has a base to extend.
///
/// ```
/// use seawall::config::{Format, policy};
/// let plan = policy("payments", r#"{"preset": "critical", "retry": {"maxAttempts": 5}}"#, Format::Json)?;
/// assert!(plan.builder().build()?.explain().contains("5 attempts"));
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub fn policy(name: &str, text: &str, format: Format) -> Result<Plan, ConfigError> {
    let mut report = Report::default();
    let file = Place::whole("policy", 0);
    let documents = read_text(&file, text, format, false, &mut report);
    let Some(tree) = documents.and_then(|documents| documents.into_iter().next()) else {
        return Err(ConfigError::in_files(report.problems));
    };
    alone(name, &tree, report)
}

/// The guard that a tree describes by itself.
pub(super) fn alone(name: &str, tree: &Node, mut report: Report) -> Result<Plan, ConfigError> {
    let mut book = Book::default();
    let layers = vec![layer::read(tree, "", &mut report)];
    book.guards.push(Named {
        name: name.into(),
        path: String::new(),
        place: tree.place.clone(),
        ground: None,
        layers,
    });
    let mut config = finish(&book, report)?;
    Ok(config.plans.swap_remove(0))
}

/// The configuration that a tree describes.
#[cfg(feature = "serde")]
pub(super) fn of_tree(tree: &Node) -> Result<Config, ConfigError> {
    let (mut report, mut book, mut foreign) = (Report::default(), Book::default(), Resilience4j::default());
    document(tree, false, &mut book, &mut foreign, &mut report);
    foreign.translate(&mut book, &mut report);
    finish(&book, report)
}

/// The top of a file.
fn document<'a>(
    root: &'a Node,
    foreign_allowed: bool,
    book: &mut Book,
    foreign: &mut Resilience4j<'a>,
    report: &mut Report,
) {
    let entries: &[_] = match &root.content {
        Content::Map(entries) => entries,
        _ if root.is_null() => &[],
        _ => {
            let wrong =
                Wrong::new(format!("{} stands here", root.noun()), "write `guards:` and each guard below it");
            return report.wrong(&root.place, "", wrong);
        }
    };
    let is_foreign = entries.iter().any(|entry| Resilience4j::knows(&entry.key));
    let mut others = Vec::new();
    for entry in entries {
        match entry.key.as_str() {
            "guards" => named("guards", &entry.value, &mut book.guards, report),
            "configs" => named("configs", &entry.value, &mut book.configs, report),
            key if Resilience4j::knows(key) => foreign.take(entry, report),
            key if foreign_allowed && !is_slip(key, &entry.value) => {}
            _ if is_foreign && !foreign_allowed => others.push(entry),
            key => {
                let mut wrong = unknown_name("section", key, SECTIONS.into_iter());
                wrong.reason = "no such section".into();
                if looks_like_a_guard(&entry.value) {
                    wrong.remedy = "write it below `guards:`, indented".into();
                }
                report.wrong(&entry.place, key, wrong);
            }
        }
    }
    if let Some(first) = others.first() {
        let names: Vec<_> = others.iter().map(|entry| entry.key.as_str()).collect();
        let reason = format!(
            "not read: {}; only `resilience4j`, `guards` and `configs` are",
            super::value::listed(&names)
        );
        report.warn(&first.place, "", reason);
    }
}

/// Whether a section was probably meant to be one of ours: nearly its name, and other sections below it, or nothing.
fn is_slip(key: &str, value: &Node) -> bool {
    let sections = match &value.content {
        Content::Map(entries) => entries.iter().all(|entry| matches!(entry.value.content, Content::Map(_))),
        _ => value.is_null(),
    };
    sections && nearest(key, SECTIONS).is_some()
}

/// The sections at the top.
const SECTIONS: [&str; 3] = ["guards", "configs", "resilience4j"];

/// Whether somebody forgot the first line, or the indentation of the second.
fn looks_like_a_guard(node: &Node) -> bool {
    let Content::Map(entries) = &node.content else { return false };
    entries.iter().any(|entry| layer::child("", &entry.key).is_some())
}

fn named(section: &str, node: &Node, all: &mut Vec<Named>, report: &mut Report) {
    let Content::Map(entries) = &node.content else {
        if !node.is_null() {
            let wrong = Wrong::new(
                format!("{} stands here", node.noun()),
                "write names, each with its settings below it",
            );
            report.wrong(&node.place, section, wrong);
        }
        return;
    };
    layer::refuse_crowd(entries, &node.place, section, report);
    for entry_of_file in entries.iter().take(layer::NAMES_MAX) {
        layer::refuse_name(entry_of_file, section, report);
        let layer = layer::read(&entry_of_file.value, &join(section, &entry_of_file.key), report);
        entry(all, section, &entry_of_file.key, &entry_of_file.place).layers.push(layer);
    }
}

/// From what the files say to guards that work.
fn finish(book: &Book, mut report: Report) -> Result<Config, ConfigError> {
    let bases = Bases::of(book, &mut report);
    let mut plans = Vec::new();
    for guard in &book.guards {
        let stack = bases.stack(guard, &mut report);
        report.problems.extend(mistakes(guard, &stack));
        let settings = resolve::settings(&stack, Assumed::Absent);
        warn_of_slow_calls(guard, &stack, &settings, &mut report);
        build::warn_of_names(guard, &settings, &mut report);
        let builder = build::builder(&guard.name, &settings);
        plans.push(Plan { name: guard.name.clone(), settings, builder });
    }
    if !report.problems.is_empty() {
        return Err(ConfigError::in_files(report.problems));
    }
    sort(&mut report.warnings);
    Ok(Config { plans, warnings: report.warnings })
}

/// What is missing in a guard and what can't work, however the settings were meant that can't be read.
fn mistakes(guard: &Named, stack: &[&Layer]) -> Vec<Problem> {
    let found = |assumed| {
        let (settings, mut report) = (resolve::settings(stack, assumed), Report::default());
        build::refuse_gaps(guard, &settings, &mut report);
        if let Err(error) = build::builder(&guard.name, &settings).build() {
            report.problems.extend(error.problems().iter().map(|problem| locate(problem, guard, &settings)));
        }
        report.problems
    };
    let all_read = stack.iter().all(|layer| layer.unread.is_empty());
    let assumed = if all_read { &Assumed::ALL[..1] } else { &Assumed::ALL[..] };
    let mut rounds = assumed.iter().map(|assumed| found(*assumed));
    let first = rounds.next().unwrap_or_default();
    rounds.fold(first, |mut problems, others| {
        let same =
            |one: &Problem, other: &Problem| (one.path(), one.reason()) == (other.path(), other.reason());
        problems.retain(|problem| others.iter().any(|other| same(problem, other)));
        problems
    })
}
