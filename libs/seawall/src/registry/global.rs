//! The one registry of a process in which `#[guarded("name")]` finds its guards.

use std::sync::OnceLock;

use super::Registry;
use crate::config::{ConfigError, Problems};

static GLOBAL: OnceLock<Registry> = OnceLock::new();

impl Registry {
    /// Makes this the registry in which [`#[guarded("name")]`](macro@crate::guarded) finds its guards. Call it once, where the
    /// program starts; a second registry is refused, because functions would be guarded by the one or the other at random.
    ///
    /// The handle stays usable, and guards that are registered later are found as well.
    pub fn set_global(&self) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        problems.refuse_if(GLOBAL.set(self.clone()).is_err(), "registry", || {
            "there is one already; take it with `Registry::global()` and register the guards there".into()
        });
        problems.into_result("the global registry", ())
    }

    /// The registry that was given to [`set_global`](Registry::set_global), if one was.
    #[must_use]
    pub fn global() -> Option<&'static Registry> {
        GLOBAL.get()
    }
}
