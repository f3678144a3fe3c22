//! On whose behalf, for what reason, in which trace and when something is done.

use std::fmt;

use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;

/// The circumstances of a change. It is the first argument of everything that changes something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    pub author: Author,
    /// The reason that the author gave; `None` if there is none.
    pub reason: Option<String>,
    /// The trace of the request; `None` for a change without a request.
    pub trace: Option<TraceId>,
    /// The wall time of the change.
    pub now: Millis,
}

/// The author of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Author {
    /// The owner of the API key with this name.
    Key(Slug),
    /// The hub itself.
    Hub,
}

impl Context {
    /// Creates the context of a change that the hub makes by itself.
    #[must_use]
    pub fn of_hub(now: Millis) -> Self {
        Context { author: Author::Hub, reason: None, trace: None, now }
    }

    /// Returns the context with another reason; `None` keeps the reason that there is.
    #[must_use]
    pub fn with_reason(&self, reason: Option<String>) -> Self {
        let own = || self.reason.clone();
        Context { author: self.author.clone(), reason: reason.or_else(own), ..*self }
    }

    /// Returns the context at a later time, for what takes long.
    #[must_use]
    pub fn at(&self, now: Millis) -> Self {
        Context { now, ..self.clone() }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Key(name) => name.fmt(f),
            Author::Hub => f.write_str("hub"),
        }
    }
}
