//! Why an expression gives no value.

use super::meter::{MEMORY_BYTES_MAX, Meter, Resource};

/// Why an expression gives no value.
#[derive(Debug)]
pub(in crate::render) enum Fault {
    /// Something that it needs is not there.
    Missing,
    /// It makes no sense for what is there.
    Wrong(String),
    /// What it makes is larger than a request may be.
    TooLarge,
    /// It costs too much.
    Spent(Spent),
}

/// A budget that ran out.
#[derive(Debug)]
pub(in crate::render) struct Spent {
    pub(super) resource: Resource,
    /// The filter, test or operator that was at work, and what it was at work on.
    pub(super) by: Option<(&'static str, String)>,
}

impl From<Resource> for Fault {
    fn from(resource: Resource) -> Self {
        Fault::Spent(Spent { resource, by: None })
    }
}

impl Fault {
    pub(super) fn wrong(reason: impl Into<String>) -> Self {
        Fault::Wrong(reason.into())
    }

    /// Names what was at work, unless something within it was named already.
    pub(super) fn by(self, name: &'static str, on: impl FnOnce() -> String) -> Self {
        match self {
            Fault::Spent(Spent { resource, by: None }) => {
                Fault::Spent(Spent { resource, by: Some((name, on())) })
            }
            other => other,
        }
    }
}

impl Spent {
    /// What ran out, where, and what to do.
    pub(in crate::render) fn explain(&self, text: &str, meter: &Meter) -> String {
        let limit = match self.resource {
            Resource::Work => format!("{} steps of work", meter.work_max()),
            Resource::Memory => format!("{MEMORY_BYTES_MAX} bytes of memory"),
        };
        let at = self
            .by
            .as_ref()
            .map_or_else(String::new, |(name, on)| format!("; it ran out in `{name}` over {on}"));
        format!(
            "`{text}` needs more than {limit}, which is what one rule may spend on one event{at}. Look at less of the \
             event, or let its sender send less in one event"
        )
    }
}
