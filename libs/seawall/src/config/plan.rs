//! What a file describes, ready to be built.

use std::fmt;
use std::path::Path;

use super::load::Loader;
use super::resolve::{Settings, is_shown};
use super::source::Format;
use super::{Changes, ConfigError, Place, Problem, build, diff, write};
use crate::guard::GuardBuilder;

/// The guards that files describe. Everything in it has been checked: each plan builds.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) plans: Vec<Plan>,
    pub(super) warnings: Vec<Problem>,
}

impl Config {
    /// Reads one file: `.yaml`, `.yml`, `.toml`, `.json` or `.properties`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Config::loader().file(path).load()
    }

    /// No guard at all.
    pub(crate) fn empty() -> Self {
        Config { plans: Vec::new(), warnings: Vec::new() }
    }

    /// Reads a text. `name` is what errors call it.
    pub fn parse(name: &str, text: &str, format: Format) -> Result<Self, ConfigError> {
        Config::loader().text(name, text, format).load()
    }

    /// Several files, and the environment.
    pub fn loader() -> Loader {
        Loader::default()
    }

    /// The guards, in the order of the files.
    #[must_use]
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The guard of this name.
    #[must_use]
    pub fn plan(&self, name: &str) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// What loads but deserves a word: keys that mean nothing here, or not quite the same.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// What becomes different with a newer configuration.
    #[must_use]
    pub fn diff(&self, newer: &Config) -> Changes {
        diff::changes(self, newer)
    }

    /// Every guard written out in full, as a file of its own: bases, presets, dialects and defaults resolved.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::yaml(&self.plans)
    }
}

/// One guard as it is described: the settings in force, and where each comes from.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) builder: GuardBuilder,
}

impl Plan {
    /// The name of the guard.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same plan for a guard of another name, such as a plan that was read without one.
    pub fn with_name(mut self, name: &str) -> Result<Self, ConfigError> {
        self.builder = build::builder(name, &self.settings);
        self.builder.clone().build()?;
        self.name = name.into();
        Ok(self)
    }

    /// A builder with these settings. Its [`build`](GuardBuilder::build) succeeds; a clock or a seed may be added before.
    pub fn builder(&self) -> GuardBuilder {
        self.builder.clone()
    }

    /// The settings in force with their defaults, in the order of the reference page. A section that is not there is
    /// off.
    pub fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        self.settings.items().filter(|item| is_shown(item)).map(|item| Setting {
            path: item.key.path,
            value: item.value.to_string(),
            origin: &item.origin,
        })
    }

    /// Whether the guard is listed where the health of the process is asked for.
    #[must_use]
    pub fn is_in_health(&self) -> bool {
        self.settings.switch("health")
    }

    /// One guard for each key, and at most so many; `None` for one guard.
    #[must_use]
    pub fn keys_max(&self) -> Option<usize> {
        self.settings.count("keys_max").and_then(|max| usize::try_from(max).ok())
    }
}

/// One setting of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting<'a> {
    path: &'static str,
    value: String,
    origin: &'a Origin,
}

impl Setting<'_> {
    /// Like `breaker.cooldown`.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// As one would write it: `30s`.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Where it comes from.
    #[must_use]
    pub fn from(&self) -> &Origin {
        self.origin
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.path, self.value, self.origin)
    }
}

/// Where a setting comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Origin {
    /// It was written, in the guard, in one of its bases or in the environment.
    Written(Place),
    /// It belongs to the preset of this name.
    Preset(&'static str),
    /// It is what the keys of another format mean where they say nothing.
    Dialect(&'static str),
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// Where it was written.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        if let Origin::Written(place) = self { Some(place) } else { None }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Written(place) => write!(f, "{place}"),
            Origin::Preset(name) => write!(f, "preset `{name}`"),
            Origin::Dialect(name) => write!(f, "default of {name}"),
            Origin::Default => f.write_str("default"),
        }
    }
}
