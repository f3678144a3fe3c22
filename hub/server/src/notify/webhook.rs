//! A message as a webhook.

use seawall::{Guard, Safety, secs};
use seawall_http::auth::{Auth, Webhook};
use seawall_http::{HttpClient, Request, Secret};
use seawall_hub_core::domain::alert::{Incident, NoticeKind};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::notify::Message;
use serde_json::{Value, json};

use crate::transport::explained;

pub(super) async fn tell(
    client: &HttpClient,
    url: &str,
    secret: Option<Secret>,
    message: &Message,
) -> Result<String, String> {
    let guard = Guard::builder("alerts").call_timeout(secs(10)).build().map_err(|error| error.to_string())?;
    let mut request = Request::post(url)
        .and_then(|request| request.header("content-type", "application/json"))
        .and_then(|request| request.header("webhook-id", &message.id))
        .map_err(|error| error.to_string())?
        .safety(Safety::Idempotent)
        .body(body(message).to_string().into_bytes());
    if let Some(secret) = secret {
        let webhook = Webhook::new([secret]).map_err(|error| error.to_string())?;
        request = request.auth(Auth::webhook(webhook));
    }
    match client.attempt(&guard, request).await {
        Ok(answer) if answer.status().is_success() => Ok(format!("it answered {}", answer.status())),
        Ok(answer) => Err(format!("it answered {}", answer.status())),
        Err(error) => Err(error.last().map_or_else(|| error.to_string(), explained)),
    }
}

/// What stands in a webhook. Its form is public: changes only add.
pub(super) fn body(message: &Message) -> Value {
    let Message { id, turn, incident, link, test, at } = message;
    let Incident { rule, kind, severity, service, opened, resolved, value, summary, .. } = incident;
    let kind_of_message = match turn {
        NoticeKind::Opened => "alert.opened",
        NoticeKind::Resolved => "alert.resolved",
    };
    json!({
        "type": kind_of_message, "id": id, "sentAt": at.to_string(), "test": test,
        "incident": {
            "id": incident.id, "rule": rule.as_str(), "kind": kind.word(), "severity": severity.word(),
            "service": service.as_ref().map(Slug::as_str), "state": turn_state(*turn), "summary": summary, "value": value,
            "openedAt": opened.to_string(), "resolvedAt": resolved.as_ref().map(|resolved| resolved.at.to_string()),
            "resolvedBecause": resolved.as_ref().map(|resolved| &resolved.because), "link": link,
        },
    })
}

fn turn_state(turn: NoticeKind) -> &'static str {
    match turn {
        NoticeKind::Opened => "open",
        NoticeKind::Resolved => "resolved",
    }
}
