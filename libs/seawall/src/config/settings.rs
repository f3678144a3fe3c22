//! A program's own settings from a file, by a table of keys.
//!
//! # Why here, and not in each program?
//! A file of guards and a file of other settings are read by the same person. Both report every problem at once, with its
//! place and the nearest key, because both go through the same reader.

use super::layer::Report;
use super::nearest::nearest;
use super::source::{Format, read_text};
use super::tree::{Content, Node, join};
use super::value::{Wrong, listed};
use super::{ConfigError, Place};

/// A key of a program's own settings: its path in a file, such as `log.level`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingKey {
    path: &'static str,
    is_list: bool,
}

impl SettingKey {
    /// A key with one value.
    #[must_use]
    pub const fn one(path: &'static str) -> Self {
        SettingKey { path, is_list: false }
    }

    /// A key with a list of values. A single value counts as a list of one.
    #[must_use]
    pub const fn list(path: &'static str) -> Self {
        SettingKey { path, is_list: true }
    }

    /// The path in a file. A dot separates a section from the keys in it.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        self.path
    }
}

/// Reads a text of a program's own settings, and passes each value to `take` as text, with its key. The items of a list come
/// one after the other. `name` is what errors call the text: its file.
///
/// The error has every problem of the text: what is not in this format, what is not in `keys` (with the nearest key), and what
/// `take` refuses, with the reason that it returns.
///
/// ```
/// use seawall::config::{Format, SettingKey, read_settings};
/// const KEYS: [SettingKey; 2] = [SettingKey::one("port"), SettingKey::one("log.level")];
///
/// let (text, mut port) = ("port = 80\n[log]\nlevle = \"debug\"\n", 8080);
/// let result = read_settings("app.toml", text, Format::Toml, &KEYS, |key, value| match key {
///     "port" => value.parse().map(|number| port = number).map_err(|_| "must be a port".into()),
///     _ => Ok(()),
/// });
/// let error = result.unwrap_err();
/// assert_eq!(error.to_string(), "app.toml:3:1: log.levle: unknown setting; did you mean `log.level`?");
/// assert_eq!(port, 80);
/// ```
pub fn read_settings(
    name: &str,
    text: &str,
    format: Format,
    keys: &[SettingKey],
    take: impl FnMut(&'static str, &str) -> Result<(), String>,
) -> Result<(), ConfigError> {
    let mut reader = Reader { keys, take, report: Report::default() };
    let documents = read_text(&Place::whole(name, 0), text, format, false, &mut reader.report);
    for tree in documents.iter().flatten() {
        reader.section(tree, "");
    }
    let problems = reader.report.problems;
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::in_files(problems)) }
}

struct Reader<'k, F> {
    keys: &'k [SettingKey],
    take: F,
    report: Report,
}

impl<F: FnMut(&'static str, &str) -> Result<(), String>> Reader<'_, F> {
    fn section(&mut self, node: &Node, path: &str) {
        let Content::Map(entries) = &node.content else {
            if !node.is_null() {
                let wrong = Wrong::new(format!("{} stands here", node.noun()), "write its settings below it");
                self.report.wrong(&node.place, path, wrong);
            }
            return;
        };
        for entry in entries {
            let path = join(path, &entry.key);
            let below = format!("{path}.");
            match self.keys.iter().find(|key| key.path == path) {
                Some(key) => self.value(*key, &entry.value),
                None if self.keys.iter().any(|key| key.path.starts_with(&below)) => {
                    self.section(&entry.value, &path);
                }
                None => {
                    let wrong = Wrong::new("unknown setting", self.meant(&path));
                    self.report.wrong(&entry.place, path, wrong);
                }
            }
        }
    }

    /// The key that was probably meant, or all of them.
    fn meant(&self, path: &str) -> String {
        let keys: Vec<&str> = self.keys.iter().map(|key| key.path).collect();
        let sections = keys.iter().filter_map(|key| Some(key.rsplit_once('.')?.0));
        match nearest(path, keys.iter().copied().chain(sections)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", listed(&keys)),
        }
    }

    fn value(&mut self, key: SettingKey, node: &Node) {
        match &node.content {
            Content::List(items) if key.is_list => items.iter().for_each(|item| self.text(key, item)),
            _ => self.text(key, node),
        }
    }

    fn text(&mut self, key: SettingKey, node: &Node) {
        let refused = match node.text() {
            Some(text) => (self.take)(key.path, text).err().map(|reason| Wrong::new(reason, "")),
            None => Some(Wrong::new(format!("{} stands here", node.noun()), "write one value")),
        };
        if let Some(wrong) = refused {
            self.report.wrong(&node.place, key.path, wrong);
        }
    }
}
