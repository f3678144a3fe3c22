//! What becomes different with a newer configuration.

use std::collections::BTreeMap;
use std::fmt;

use super::{Config, Plan, Problem};

/// The difference between two configurations, setting by setting as they are in force.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Changes {
    /// Guards that come.
    pub added: Vec<String>,
    /// Guards that go.
    pub removed: Vec<String>,
    /// Settings that change in guards that stay.
    pub changed: Vec<Change>,
    /// What is said about the newer configuration, changed or not.
    pub warnings: Vec<Problem>,
}

/// One setting that changes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The guard.
    pub guard: String,
    /// The setting, like `breaker.cooldown`.
    pub path: &'static str,
    /// What it was, or `None` if it was not there.
    pub old: Option<String>,
    /// What it becomes, or `None` if it is not there any more.
    pub new: Option<String>,
}

impl Changes {
    /// Whether nothing changes. Warnings are no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

pub(super) fn changes(old: &Config, new: &Config) -> Changes {
    let missing_in = |config: &Config, plans: &[Plan]| -> Vec<String> {
        let missing = plans.iter().filter(|plan| config.plan(plan.name()).is_none());
        missing.map(|plan| plan.name().to_owned()).collect()
    };
    let pairs = old.plans().iter().filter_map(|plan| Some((plan, new.plan(plan.name())?)));
    Changes {
        added: missing_in(old, new.plans()),
        removed: missing_in(new, old.plans()),
        changed: pairs.flat_map(|(old, new)| of_plan(old, new)).collect(),
        warnings: new.warnings().to_vec(),
    }
}

fn of_plan(old: &Plan, new: &Plan) -> Vec<Change> {
    let values = |plan: &Plan| -> BTreeMap<&'static str, String> {
        plan.settings().map(|setting| (setting.path(), setting.value().to_owned())).collect()
    };
    let (before, after) = (values(old), values(new));
    // In the order of the reference page.
    let paths = super::schema::TABLE.iter().map(|key| key.path);
    let changed = paths.filter(|path| before.get(path) != after.get(path));
    changed
        .map(|path| Change {
            guard: old.name().to_owned(),
            path,
            old: before.get(path).cloned(),
            new: after.get(path).cloned(),
        })
        .collect()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing changes");
        }
        let added = self.added.iter().map(|guard| format!("+ {guard}"));
        let removed = self.removed.iter().map(|guard| format!("- {guard}"));
        let changed = self.changed.iter().map(Change::to_string);
        f.write_str(&added.chain(removed).chain(changed).collect::<Vec<_>>().join("\n"))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        write!(f, "{}.{}: {} → {}", self.guard, self.path, shown(&self.old), shown(&self.new))
    }
}
