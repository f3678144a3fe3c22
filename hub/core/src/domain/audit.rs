//! Who has changed what, when and why.

use super::time::Millis;

/// An entry of the audit log. It is written in the same unit as the change itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// When the change was made.
    pub at: Millis,
    /// The name of the key, or `hub` for a change that the hub made by itself.
    pub who: String,
    /// The action, like `service.put` or `deadLetter.replay`.
    pub action: String,
    /// The name or id of the changed thing.
    pub target: String,
    /// The reason that the author gave.
    pub reason: Option<String>,
    /// The trace of the request.
    pub trace: Option<String>,
}
