//! `seawall send`: one event, or a file of them.

mod batch;
mod lines;

use clap::Args;
use seawall_hub_server::client::Ask;
use seawall_hub_server::http::fresh_event_id;
use serde_json::Value;

use crate::failure::Done;
use crate::input;
use crate::talk::Session;

const EVENTS: &str = "/api/v1/bridge/events";

#[derive(Args)]
pub(crate) struct Send {
    /// What happened, like `order.created`.
    #[arg(value_name = "TYPE", required_unless_present = "file", conflicts_with = "file")]
    kind: Option<String>,

    /// Its name: sent twice under the same one, it is one event. One is made unless it is said.
    #[arg(long, conflicts_with = "file")]
    id: Option<String>,

    /// Where it comes from.
    #[arg(long, conflicts_with = "file")]
    source: Option<String>,

    /// What it is about: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    data: Option<String>,

    /// Another name for it, for senders that have no ids.
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    idempotency_key: Option<String>,

    /// A file with an event on each line, or `-` for stdin. Each has an id, so the file may be sent again.
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
}

impl Send {
    pub(in crate::command) async fn run(self, session: &Session) -> Done {
        match &self.file {
            Some(file) => batch::send(session, file).await,
            None => self.one(session).await,
        }
    }

    async fn one(self, session: &Session) -> Done {
        // Whoever names it by a key gets an id from the hub, the same one each time.
        let id = self.id.or_else(|| self.idempotency_key.is_none().then(fresh_event_id));
        let texts = [("id", id), ("type", self.kind), ("source", self.source)];
        let mut fields: Vec<String> = texts
            .into_iter()
            .filter_map(|(name, value)| Some(format!("\"{name}\":{}", Value::from(value?))))
            .collect();
        if let Some(data) = &self.data {
            fields.push(format!("\"data\":{}", input::json_data(data)?));
        }
        let ask = Ask::post(EVENTS).json(format!("{{{}}}", fields.join(",")));
        let data = session.ask(ask.header("idempotency-key", self.idempotency_key)).await?;
        session.told(&data, told)
    }
}

fn told(data: &Value) -> String {
    let deliveries: Vec<&str> =
        data["deliveries"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let id = data["id"].as_str().unwrap_or_default();
    let mut out = match deliveries.len() {
        _ if data["deduplicated"] == true => format!("event {id} was accepted before; nothing is done twice"),
        0 if data["unmatched"] == true => format!("event {id} is accepted, and no rule is for it"),
        0 => format!("event {id} is accepted, and no rule takes it"),
        1 => format!("event {id} is accepted, and leads to a delivery:"),
        count => format!("event {id} is accepted, and leads to {count} deliveries:"),
    };
    for delivery in deliveries {
        out.push_str(&format!("\n  {delivery}"));
    }
    out
}
