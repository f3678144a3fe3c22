//! How a message about an incident gets to people.

use std::future::Future;

use crate::domain::alert::{Channel, Incident, NoticeKind};
use crate::domain::time::Millis;

/// A message about an incident.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// The id of the message, the same for every attempt to send it.
    pub id: String,
    /// What the message reports.
    pub turn: NoticeKind,
    /// The current state of the incident.
    pub incident: Incident,
    /// The URL of the incident in the dashboard.
    pub link: String,
    /// Whether this is a test message without a real incident.
    pub test: bool,
    /// When the message is sent.
    pub at: Millis,
}

/// The port that sends one message to a channel, once. Who is notified and when is decided elsewhere. Implementations are
/// handles.
pub trait Notifier: Clone + Send + Sync + 'static {
    /// Sends the message. Returns the answer of the channel or the reason of the failure, both without secrets.
    fn tell(
        &self,
        channel: &Channel,
        message: &Message,
    ) -> impl Future<Output = Result<String, String>> + Send;
}
