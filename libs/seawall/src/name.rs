//! Names of guards, as errors carry them.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of a guard that costs an error nothing to carry.
///
/// # Why not an `Arc`?
/// A refusal should cost less than the call that it saves, and counting references up and down takes half of that time.
/// Guards are few and live long, so their names are interned and stay for the life of the process. A program that makes
/// guards without an end (one per tenant) would grow without an end, so beyond [`INTERNED_MAX`] names are counted after all.
#[derive(Clone)]
pub(crate) enum Name {
    // Both thin, because an error is moved about.
    Interned(&'static String),
    Counted(Arc<String>),
}

/// The number of names that stay for the life of the process: some hundred kilobytes at most.
const INTERNED_MAX: usize = 4_096;

impl Name {
    pub(crate) fn new(name: &str) -> Self {
        static NAMES: Mutex<Option<HashSet<&'static String>>> = Mutex::new(None);
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let names = names.get_or_insert_with(HashSet::new);
        let name = name.to_string();
        if let Some(known) = names.get(&name) {
            return Name::Interned(known);
        }
        if names.len() >= INTERNED_MAX || name.len() > 256 {
            return Name::Counted(Arc::new(name));
        }
        let interned: &'static String = Box::leak(Box::new(name));
        names.insert(interned);
        Name::Interned(interned)
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Name::Interned(name) => name,
            Name::Counted(name) => name,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-11: a name is the same for all guards that bear it, and guards without an end leave no names without an end.
    #[test]
    fn eng_11_names_are_interned_up_to_a_bound() {
        let name = |text: &str| Name::new(text);
        let (one, two) = (name("payments"), name("payments"));
        assert_eq!((one.as_str(), &one), ("payments", &two));
        assert!(matches!(one, Name::Interned(_)));
        let many: Vec<Name> = (0..=INTERNED_MAX).map(|number| name(&format!("tenant-{number}"))).collect();
        assert!(matches!(many.last(), Some(Name::Counted(_))));
        assert_eq!(many[INTERNED_MAX].as_str(), format!("tenant-{INTERNED_MAX}"));
    }
}
