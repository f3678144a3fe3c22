//! The hub's numbers: for Prometheus, and as Spring's actuator has them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use seawall::{Clock, Tick};
use seawall_hub_core::service::numbers;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::Caught;
use super::query::Query;
use super::reply::missing;
use crate::hub::Hub;
use crate::numbers::Numbers;
use crate::responses::IsCounted;

/// A text of at least so many bytes is kept,
const KEPT_BYTES_MIN: usize = 256 * 1024;
/// for so long: nobody asks more often, and many who ask at once cost no more than one.
const KEPT_FOR: Duration = Duration::from_secs(1);

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::system);

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
    let kept = hub.metrics_text().lock().await;
    let now = CLOCK.now();
    let known = kept.as_ref().filter(|(at, _)| now.since(*at) < KEPT_FOR).map(|(_, text)| text.clone());
    let text = match known {
        Some(text) => text,
        None => made(&hub, kept, now).await,
    };
    let mut response =
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response();
    // One text for all who ask.
    response.extensions_mut().insert(IsCounted);
    response
}

/// The text as it is now. One that takes long to make is kept for who else asks.
async fn made(hub: &Hub, mut kept: MutexGuard<'_, Option<(Tick, Bytes)>>, now: Tick) -> Bytes {
    let text = Bytes::from(read(hub, Numbers::prometheus).await);
    *kept = (text.len() > KEPT_BYTES_MIN).then(|| (now, text.clone()));
    text
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
