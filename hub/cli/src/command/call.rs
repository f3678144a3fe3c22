//! `seawall call`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use seawall_client::Reply;
use seawall_client::api::{BodyEncoding, CallInput, CallMode, CallResponse, CallResult, Headers, QueuedCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::input;
use crate::output::note;

/// The extra time that the hub has beyond the call's own timeout, so that the hub reports the timeout.
const MARGIN: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct Call {
    service: String,
    /// HTTP method, such as GET or POST.
    method: String,
    /// Path and query below the address of the service, such as `/invoices?of=7`.
    path: String,

    /// Header as `name: value`; repeatable.
    #[arg(long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,

    /// Request body: a text, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "TEXT")]
    data: Option<String>,

    /// When to make the call (default sync).
    #[arg(long)]
    mode: Option<CallModeArg>,

    /// Idempotency key: two calls with the same key count as one.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum CallModeArg {
    /// Call now and print the response.
    Sync,
    /// Queue the call and print the delivery.
    Async,
    /// Call now, and queue the call if that fails.
    SyncOrQueue,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write `name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl From<CallModeArg> for CallMode {
    fn from(mode: CallModeArg) -> Self {
        match mode {
            CallModeArg::Sync => CallMode::Sync,
            CallModeArg::Async => CallMode::Async,
            CallModeArg::SyncOrQueue => CallMode::SyncOrQueue,
        }
    }
}

impl Call {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let mut call = session.hub.call(&self.service, &self.input(session.timeout)?);
        if let Some(key) = self.idempotency_key {
            call = call.idempotency_key(key);
        }
        if let Some(time) = session.timeout {
            call = call.timeout(time + MARGIN);
        }
        let reply = session.send(call).await?;
        match &*reply {
            CallResult::Queued(call) => session.told(&reply, |_| queued(call)),
            CallResult::Response(response) => answered(session, &reply, response),
        }
    }

    fn input(&self, timeout: Option<Duration>) -> Result<CallInput, CommandError> {
        let mut headers: Headers = self.header.iter().cloned().collect();
        let data = self.data.as_deref().map(input::any_data).transpose()?;
        if let Some((_, true)) = data
            && !headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"))
        {
            headers.insert("content-type".into(), "application/json".into());
        }
        let time = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        Ok(CallInput {
            method: Some(self.method.clone()),
            path: Some(self.path.as_str().into()),
            headers: Some(headers).filter(|headers| !headers.is_empty()),
            // As a text, so that what arrives is what was written, to the byte.
            body_encoding: data.is_some().then_some(BodyEncoding::Text),
            body: data.map(|(text, _)| text.into()),
            mode: self.mode.map(Into::into),
            timeout_ms: timeout.map(time),
            query: None,
        })
    }
}

fn queued(call: &QueuedCall) -> String {
    let delivery = call.delivery.as_ref().or(call.deliveries.first()).map_or("", |id| id.as_str());
    let why = call.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("queued as delivery {delivery}{why}\nseawall deliveries show {delivery} --watch")
}

/// Prints the response body on stdout and the status on stderr.
fn answered(session: &Session, reply: &Reply<CallResult>, response: &CallResponse) -> CommandResult {
    let status = response.http_status;
    if session.out.json {
        session.out.line(reply.text())?;
    } else {
        let circuit = response.circuit.as_ref().map_or("none", |circuit| circuit.as_str());
        let stood_in = if response.fallback { ", from a fallback" } else { "" };
        note(&format!(
            "status {status}{stood_in}; attempts: {}, {} ms, circuit: {circuit}",
            response.attempts, response.latency_ms
        ));
        match &response.body {
            Value::Null => {}
            Value::String(body) if response.body_encoding != BodyEncoding::Json => {
                session.out.content(body)?;
            }
            _ => session.out.content(exact_body(reply.text()))?,
        }
    }
    if status < 400 { Ok(()) } else { Err(CommandError::silent(REFUSED)) }
}

/// JSON as the service wrote it, with numbers that no program here can hold.
fn exact_body(data: &str) -> &str {
    #[derive(Deserialize)]
    struct ExactResponse<'a> {
        #[serde(borrow)]
        body: &'a RawValue,
    }
    serde_json::from_str::<ExactResponse<'_>>(data).map_or("", |response| response.body.get())
}
