//! Why an expression gives no value.

use super::meter::{BudgetKind, MEMORY_BYTES_MAX, Meter};

/// The reason why an expression gives no value.
#[derive(Debug)]
pub(in crate::render) enum Fault {
    /// The event lacks something that it needs.
    Missing,
    /// The expression makes no sense for the values.
    Wrong(String),
    /// The result is larger than a request may be.
    TooLarge,
    /// The evaluation costs too much.
    Spent(BudgetError),
}

/// A budget that is used up.
#[derive(Debug)]
pub(in crate::render) struct BudgetError {
    pub(super) resource: BudgetKind,
    /// The filter, test or operator that was running, and the size of its input.
    pub(super) by: Option<(&'static str, String)>,
}

impl From<BudgetKind> for Fault {
    fn from(resource: BudgetKind) -> Self {
        Fault::Spent(BudgetError { resource, by: None })
    }
}

impl Fault {
    pub(super) fn wrong(reason: impl Into<String>) -> Self {
        Fault::Wrong(reason.into())
    }

    /// Names what was running, unless something within it was named already.
    pub(super) fn by(self, name: &'static str, on: impl FnOnce() -> String) -> Self {
        match self {
            Fault::Spent(BudgetError { resource, by: None }) => {
                Fault::Spent(BudgetError { resource, by: Some((name, on())) })
            }
            other => other,
        }
    }
}

impl BudgetError {
    /// Explains what was used up, where, and what to do.
    pub(in crate::render) fn explain(&self, text: &str, meter: &Meter) -> String {
        let limit = match self.resource {
            BudgetKind::Work => format!("{} steps of work", meter.work_max()),
            BudgetKind::Memory => format!("{MEMORY_BYTES_MAX} bytes of memory"),
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
