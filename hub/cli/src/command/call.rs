//! `seawall call`.

use std::collections::HashMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use seawall_hub_server::client::{Ask, path_part};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::failure::{Done, Failure, REFUSED};
use crate::input;
use crate::output::note;
use crate::talk::{Data, Session};

/// The hub has so much longer than the call that it makes, so that it is the hub that says what became of it.
const MARGIN: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct Call {
    service: String,
    /// GET, POST, …
    method: String,
    /// Below the address of the service, with its query: `/invoices?of=7`.
    path: String,

    /// A header, `name: value`; may be given more than once.
    #[arg(long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,

    /// The body: a text, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "TEXT")]
    data: Option<String>,

    /// Now, later, or now and otherwise later.
    #[arg(long)]
    mode: Option<Mode>,

    /// Two calls with the same key are one.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Answers with the answer.
    Sync,
    /// Keeps it, and answers with a delivery.
    Async,
    /// Keeps it if it can't be done now.
    SyncOrQueue,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write `name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Call {
    pub(super) async fn run(self, session: &Session) -> Done {
        let path = format!("/api/v1/gateway/services/{}:call", path_part(&self.service));
        let body = self.body(session.timeout)?;
        let ask = Ask::post(path).json(body).header("idempotency-key", self.idempotency_key);
        let data = match session.timeout {
            Some(time) => session.ask_within(&ask, time + MARGIN).await?,
            None => session.ask(ask).await?,
        };
        if data.status == 202 { queued(session, &data) } else { answered(session, &data) }
    }

    fn body(&self, timeout: Option<Duration>) -> Result<String, Failure> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        set("method", self.method.as_str().into());
        set("path", self.path.as_str().into());
        let mut headers: Map<String, Value> =
            self.header.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        if let Some((data, is_json)) = self.data.as_deref().map(input::any_data).transpose()? {
            if is_json && !headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
                headers.insert("content-type".into(), "application/json".into());
            }
            // As a text, so that what arrives is what was written, to the byte.
            set("body", data.into());
            set("bodyEncoding", "text".into());
        }
        if !headers.is_empty() {
            set("headers", headers.into());
        }
        let mode = self.mode.map(|mode| match mode {
            Mode::Sync => "sync",
            Mode::Async => "async",
            Mode::SyncOrQueue => "sync_or_queue",
        });
        if let Some(mode) = mode {
            set("mode", mode.into());
        }
        if let Some(time) = timeout {
            set("timeoutMs", u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1).into());
        }
        Ok(Value::from(fields).to_string())
    }
}

fn queued(session: &Session, data: &Data) -> Done {
    session.told(data, |data| {
        let delivery = data["delivery"].as_str().or(data["deliveries"][0].as_str()).unwrap_or_default();
        let why = data["why"].as_str().map_or_else(String::new, |why| format!(", because {why}"));
        format!("it is kept as delivery {delivery}{why}\nseawall deliveries show {delivery} --watch")
    })
}

/// The answer's body on stdout, and on stderr how it came about.
fn answered(session: &Session, data: &Data) -> Done {
    let Data { value, text, .. } = data;
    let status = value["httpStatus"].as_u64().unwrap_or_default();
    if session.out.json {
        session.out.line(text)?;
    } else {
        let number = |field: &str| value[field].as_u64().unwrap_or_default();
        let circuit = value["circuit"].as_str().unwrap_or("none");
        let stood_in = if value["fallback"] == true { ", from a fallback" } else { "" };
        note(&format!(
            "it answered {status}{stood_in}; attempts: {}, {} ms, circuit: {circuit}",
            number("attempts"),
            number("latencyMs")
        ));
        match &value["body"] {
            Value::Null => {}
            Value::String(body) if value["bodyEncoding"] != "json" => session.out.content(body)?,
            _ => session.out.content(&exact_body(text))?,
        }
    }
    if status < 400 { Ok(()) } else { Err(Failure::silent(REFUSED)) }
}

/// JSON as the service wrote it, with numbers that no program here can hold.
fn exact_body(data: &str) -> String {
    let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(data).unwrap_or_default();
    fields.get("body").map(|body| body.get().to_owned()).unwrap_or_default()
}
