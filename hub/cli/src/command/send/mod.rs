//! `seawall send`: one event, or a file of them.

mod batch;
mod lines;

use clap::Args;
use ring::rand::{SecureRandom, SystemRandom};
use seawall_client::api::{AcceptedEvent, EventInput};
use serde_json::value::RawValue;

use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::input;

#[derive(Args)]
pub(crate) struct Send {
    /// Event type, such as `order.created`.
    #[arg(value_name = "TYPE", required_unless_present = "file", conflicts_with = "file")]
    kind: Option<String>,

    /// Event id; an event with a known id is a duplicate (default: a new id).
    #[arg(long, conflicts_with = "file")]
    id: Option<String>,

    /// Source of the event.
    #[arg(long, conflicts_with = "file")]
    source: Option<String>,

    /// Event data: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    data: Option<String>,

    /// Idempotency key, for senders without event ids.
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    idempotency_key: Option<String>,

    /// File with one event per line, or `-` for stdin. Every event needs an id, so the file can be sent again safely.
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
}

impl Send {
    pub(in crate::command) async fn run(self, session: &Session) -> CommandResult {
        match &self.file {
            Some(file) => batch::send(session, file).await,
            None => self.one(session).await,
        }
    }

    async fn one(self, session: &Session) -> CommandResult {
        // With an idempotency key the hub assigns the id, the same one each time.
        let id = match (self.id, &self.idempotency_key) {
            (None, None) => Some(fresh_event_id()?),
            (id, _) => id,
        };
        // Numbers keep their exact digits.
        let data = self.data.as_deref().map(input::json_data).transpose()?;
        let data = data.map(RawValue::from_string).transpose().map_err(CommandError::of)?;
        let event = EventInput {
            id: id.map(Into::into),
            r#type: self.kind.unwrap_or_default().into(),
            source: self.source,
            time: None,
            subject: None,
            data,
        };
        let mut call = session.hub.events().send(&event);
        if let Some(key) = self.idempotency_key {
            call = call.idempotency_key(key);
        }
        let reply = session.send(call).await?;
        session.told(&reply, summary)
    }
}

/// An id for an event that has none.
fn fresh_event_id() -> Result<String, CommandError> {
    let mut bytes = [0_u8; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| CommandError::new(REFUSED, "the system has no randomness for an event id"))?;
    Ok(format!("evt_{:032x}", u128::from_be_bytes(bytes)))
}

fn summary(event: &AcceptedEvent) -> String {
    let id = &event.id;
    let mut out = match event.deliveries.len() {
        _ if event.deduplicated => format!("event {id} is a duplicate: it was accepted before"),
        0 if event.unmatched => format!("event {id} accepted; no rule matched"),
        0 => format!("event {id} accepted; every matching rule filtered it out"),
        1 => format!("event {id} accepted; 1 delivery:"),
        count => format!("event {id} accepted; {count} deliveries:"),
    };
    for delivery in &event.deliveries {
        out.push_str(&format!("\n  {delivery}"));
    }
    out
}
