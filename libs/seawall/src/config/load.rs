//! Files and the environment, read and put together.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::assume::Assumed;
use super::book::{Bases, Book, Named, entry};
use super::dialect::resilience4j::{Resilience4j, warn_of_slow_calls};
use super::layer::{self, Layer, Report, unknown_name};
use super::problem::sort;
use super::resolve::{self, locate};
use super::tree::{Content, Node, TEXT_MAX, find_duplicates, join};
use super::value::Wrong;
use super::{Config, ConfigError, Place, Plan, Problem, build, env, json, toml, yaml};

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
    /// JSON as in RFC 8259.
    Json,
}

impl Format {
    /// The format that the name of a file says.
    #[must_use]
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Format::Yaml),
            "toml" => Some(Format::Toml),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// Where a configuration comes from: files, each laid over the one before, and the environment over all of them.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is read before `load`"]
pub struct Loader {
    sources: Vec<Source>,
    variables: Vec<(String, Vec<(String, String)>)>,
    prefixes: Vec<String>,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Text { name: String, text: String, format: Format },
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
        let (mut trees, sources) = (Vec::new(), self.sources.len());
        for (order, source) in self.sources.into_iter().enumerate() {
            let order = u32::try_from(order).unwrap_or(u32::MAX);
            match source {
                Source::File(path) => {
                    let file = Place::whole(&path.display().to_string(), order);
                    trees.extend(read_file(&file, &path, &mut report));
                }
                Source::Text { name, text, format } => {
                    trees.extend(read_text(&Place::whole(&name, order), &text, format, &mut report));
                }
            }
        }
        // With half of the text missing, everything after this would be noise.
        if trees.len() < sources {
            return Err(ConfigError::in_files(report.problems));
        }
        let (mut book, mut foreign) = (Book::default(), Resilience4j::default());
        for tree in &trees {
            document(tree, &mut book, &mut foreign, &mut report);
        }
        foreign.translate(&mut book, &mut report);
        if let Some(tree) = trees.first().filter(|_| book.guards.is_empty()) {
            report.warn(&tree.place, "", "there is no guard in it; write one below `guards`".into());
        }
        for prefix in self.prefixes {
            env::lay_over(&prefix, env::of_process(), &mut book, &mut report);
        }
        for (prefix, variables) in self.variables {
            env::lay_over(&prefix, variables, &mut book, &mut report);
        }
        finish(&book, report)
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
    let (mut report, mut book) = (Report::default(), Book::default());
    let file = Place::whole("policy", 0);
    let Some(tree) = read_text(&file, text, format, &mut report) else {
        return Err(ConfigError::in_files(report.problems));
    };
    let layers = vec![layer::read(&tree, "", &mut report)];
    book.guards.push(Named {
        name: name.into(),
        path: String::new(),
        place: tree.place,
        ground: None,
        layers,
    });
    let mut config = finish(&book, report)?;
    Ok(config.plans.swap_remove(0))
}

fn read_file(file: &Place, path: &Path, report: &mut Report) -> Option<Node> {
    let Some(format) = Format::of(path) else {
        let wrong =
            Wrong::new("its name does not say how it is written", "call it `.yaml`, `.toml` or `.json`");
        report.wrong(file, "", wrong);
        return None;
    };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.wrong(
                file,
                "",
                Wrong::new(format!("can't be read: {error}"), "check its name and its rights"),
            );
            return None;
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => read_text(file, &text, format, report),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            let wrong = Wrong::new(format!("line {line} is not UTF-8"), "save the file as UTF-8");
            report.wrong(file, "", wrong);
            None
        }
    }
}

fn read_text(file: &Place, text: &str, format: Format, report: &mut Report) -> Option<Node> {
    if text.len() > TEXT_MAX {
        let reason = format!("it has more than {TEXT_MAX} bytes");
        report.wrong(file, "", Wrong::new(reason, "a configuration is smaller than that"));
        return None;
    }
    let text = text.trim_start_matches('\u{feff}');
    let tree = match format {
        Format::Yaml => yaml::read(file, text).map_err(|problem| vec![problem]),
        Format::Toml => toml::read(file, text),
        Format::Json => json::read(file, text).map_err(|problem| vec![problem]),
    };
    match tree {
        Ok(tree) => {
            find_duplicates(&tree, "", &mut report.problems);
            Some(tree)
        }
        Err(problems) => {
            report.problems.extend(problems);
            None
        }
    }
}

/// The top of a file.
fn document<'a>(root: &'a Node, book: &mut Book, foreign: &mut Resilience4j<'a>, report: &mut Report) {
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
            _ if is_foreign => others.push(entry),
            key => {
                let mut wrong =
                    unknown_name("section", key, ["guards", "configs", "resilience4j"].into_iter());
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
