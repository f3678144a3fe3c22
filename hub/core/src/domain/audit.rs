//! Who has changed what, when and why.

use super::time::Millis;

/// A change, as it is remembered. It is written in the same unit as the change itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// When.
    pub at: Millis,
    /// The name of the key, or `hub` for what it did by itself.
    pub who: String,
    /// `service.put`, `deadLetter.replay`, …
    pub action: String,
    /// Of what.
    pub target: String,
    /// Why, as whoever did it says.
    pub reason: Option<String>,
    /// The trace of the request.
    pub trace: Option<String>,
}
