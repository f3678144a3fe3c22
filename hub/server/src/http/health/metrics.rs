//! The hub's numbers: for Prometheus, and as Spring's actuator has them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use seawall::Tick;
use seawall_api::{MetricNames, MetricQuery, TagFilter};
use seawall_hub_core::metric_names;
use serde::Serialize;
use tokio::sync::MutexGuard;

use crate::http::error::ApiError;
use crate::http::query::QueryInput;
use crate::hub::Server;
use crate::metric_store::MetricStore;
use crate::responses::CountedMark;

/// The size in bytes from which on a text is cached.
const KEPT_BYTES_MIN: usize = 256 * 1024;
/// How long a text is cached: nobody asks more often, and many who ask at once cost no more than one.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Reads the numbers as they are now.
async fn read<T>(hub: &Server, read: impl FnOnce(&MetricStore) -> T) -> T {
    let _one_after_the_other = hub.metric_store.lock_gauges().await;
    let numbers = &hub.metric_store;
    numbers.clear_gauges();
    hub.ops.record_gauges().await;
    metrics::gauge!(metric_names::RESPONSE_MEMORY).set(hub.responses.taken() as f64);
    read(numbers)
}

pub(crate) async fn prometheus(State(hub): State<Arc<Server>>) -> Response {
    let kept = hub.metrics_text.lock().await;
    let now = hub.clock().now();
    let known = kept.as_ref().filter(|(at, _)| now.since(*at) < KEPT_FOR).map(|(_, text)| text.clone());
    let text = match known {
        Some(text) => text,
        None => made(&hub, kept, now).await,
    };
    let mut response =
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response();
    // One text for all who ask.
    response.extensions_mut().insert(CountedMark);
    response
}

/// The text as it is now. One that takes long to make is kept for who else asks.
async fn made(hub: &Server, mut kept: MutexGuard<'_, Option<(Tick, Bytes)>>, now: Tick) -> Bytes {
    let text = Bytes::from(read(hub, MetricStore::prometheus).await);
    *kept = (text.len() > KEPT_BYTES_MIN).then(|| (now, text.clone()));
    text
}

pub(crate) async fn names(State(hub): State<Arc<Server>>) -> Response {
    let names = read(&hub, MetricStore::names).await;
    plain(&MetricNames { names })
}

/// `?tag=service:billing` narrows it down; may be given more than once.
pub(crate) async fn one(
    State(hub): State<Arc<Server>>,
    Path(name): Path<String>,
    QueryInput(query): QueryInput<MetricQuery>,
) -> Result<Response, ApiError> {
    let pair = |tag: &TagFilter| {
        tag.as_str().split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let tags: Vec<_> = query.tag.iter().flatten().filter_map(pair).collect();
    let metric = read(&hub, |numbers| numbers.metric(&name, &tags)).await;
    Ok(plain(&metric.ok_or_else(|| ApiError::missing("metric"))?))
}

/// Without our envelope: whoever asks here knows another's form.
fn plain(body: &impl Serialize) -> Response {
    let body = serde_json::to_string(body).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
