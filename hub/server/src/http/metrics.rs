//! The hub's numbers: for Prometheus, and as Spring's actuator has them.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use seawall_hub_core::service::numbers;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Caught;
use super::query::Query;
use super::reply::missing;
use crate::hub::Hub;
use crate::numbers::Numbers;

/// One after the other: gauges are taken away and set anew, and nobody may look in between.
static READING: Mutex<()> = Mutex::const_new(());

/// Reads the numbers as they are now.
async fn read<T>(hub: &Hub, read: impl FnOnce(&Numbers) -> T) -> T {
    let _one_after_the_other = READING.lock().await;
    let numbers = Numbers::of_process();
    numbers.clear_gauges();
    hub.store().record_gauges();
    hub.record_gauges().await;
    metrics::gauge!(numbers::RESPONSE_MEMORY).set(hub.responses().taken() as f64);
    read(numbers)
}

pub(super) async fn prometheus(State(hub): State<Arc<Hub>>) -> Response {
    let text = read(&hub, Numbers::prometheus).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

pub(super) async fn names(State(hub): State<Arc<Hub>>) -> Response {
    let names = read(&hub, Numbers::names).await;
    plain(&json!({"names": names}))
}

/// `?tag=service:billing` narrows it down; may be given more than once.
pub(super) async fn one(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let mut tags = Vec::new();
    while let Some(tag) = query.text("tag") {
        match tag.split_once(':') {
            Some((name, value)) => tags.push((name.to_owned(), value.to_owned())),
            None => query.wrong("tag", format!("`{tag}` is not written as `name:value`")),
        }
    }
    query.end("tag")?;
    let metric = read(&hub, |numbers| numbers.metric(&name, &tags)).await;
    Ok(metric.map_or_else(|| missing("metric"), |metric| plain(&metric)))
}

/// Without our envelope: whoever asks here knows another's form.
fn plain(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
