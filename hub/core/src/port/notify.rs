//! How a message about an incident gets to people.

use std::future::Future;

use crate::domain::alert::{Channel, Incident, Turn};
use crate::domain::time::Millis;

/// A message about an incident.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Its name: the same whenever it is sent again.
    pub id: String,
    /// What it is about.
    pub turn: Turn,
    /// The incident, as it is now.
    pub incident: Incident,
    /// Where people see more of it.
    pub link: String,
    /// Whether nothing has happened, and somebody wants to see whether messages arrive.
    pub test: bool,
    /// When it is sent.
    pub at: Millis,
}

/// How a message gets to people: one try, and nothing else. Who is told when is decided elsewhere. A handle.
pub trait Notifier: Clone + Send + Sync + 'static {
    /// Tells it there. What the other side said, or why it did not go well, without secrets.
    fn tell(
        &self,
        channel: &Channel,
        message: &Message,
    ) -> impl Future<Output = Result<String, String>> + Send;
}
