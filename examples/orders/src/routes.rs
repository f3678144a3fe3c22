//! The HTTP side: routes, and what becomes of errors.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use seawall::task::SharedWorkError;
use seawall::{Class, Kind};
use serde::Serialize;

use crate::App;
use crate::catalogue::Product;
use crate::inventory::Stock;
use crate::orders::{self, NewOrder, PlacedOrder};
use crate::prices::Price;
use crate::telemetry;
use crate::upstream::UpstreamError;

type Answer<T> = Result<Json<T>, ApiError>;

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/stock/{sku}", get(stock))
        .route("/prices/{sku}", get(price))
        .route("/products/{sku}", get(product))
        .route("/orders", post(place))
        .route("/orders/batch", post(place_all))
        .layer(middleware::from_fn(telemetry::in_span))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/guards", get(guards))
        .with_state(app)
}

async fn stock(State(app): State<Arc<App>>, Path(sku): Path<String>) -> Answer<Stock> {
    found(app.inventory.stock(&sku).await?, &sku)
}

async fn price(State(app): State<Arc<App>>, Path(sku): Path<String>) -> Answer<Price> {
    found(app.prices.price(&sku).await?, &sku)
}

async fn product(State(app): State<Arc<App>>, Path(sku): Path<String>) -> Answer<Product> {
    found(app.catalogue.product(&sku).await?, &sku)
}

async fn place(State(app): State<Arc<App>>, Json(order): Json<NewOrder>) -> Answer<PlacedOrder> {
    orders::place(&app, order).await.map(Json)
}

/// One result for each order, in their order.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum BatchResult {
    Placed(PlacedOrder),
    Failed(ApiError),
}

async fn place_all(State(app): State<Arc<App>>, Json(orders): Json<Vec<NewOrder>>) -> Json<Vec<BatchResult>> {
    let results = orders::place_all(&app, orders).await.into_iter();
    Json(results.map(|result| result.map_or_else(BatchResult::Failed, BatchResult::Placed)).collect())
}

async fn ready(State(app): State<Arc<App>>) -> StatusCode {
    if app.readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn metrics(State(app): State<Arc<App>>) -> String {
    app.registry.record_gauges();
    app.metrics.render()
}

/// What every guard does, in words.
async fn guards(State(app): State<Arc<App>>) -> String {
    app.registry.guards().iter().map(|guard| guard.explain()).collect()
}

fn found<T>(value: Option<T>, sku: &str) -> Answer<T> {
    value.map(Json).ok_or_else(|| ApiError::not_found(format!("no product `{sku}`")))
}

/// What a caller is told.
#[derive(Debug, Serialize)]
pub struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    /// When to come back, where somebody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

impl ApiError {
    pub fn not_found(error: String) -> Self {
        ApiError { status: StatusCode::NOT_FOUND, error, retry_after_seconds: None }
    }

    pub fn conflict(error: String) -> Self {
        ApiError { status: StatusCode::CONFLICT, error, retry_after_seconds: None }
    }

    pub fn internal(error: String) -> Self {
        ApiError { status: StatusCode::INTERNAL_SERVER_ERROR, error, retry_after_seconds: None }
    }
}

/// One error for everything that can become of a guarded call: it says by whom it was decided and when to come back.
impl From<&UpstreamError> for ApiError {
    fn from(error: &UpstreamError) -> Self {
        let status = match error.kind() {
            Kind::Rejected => StatusCode::SERVICE_UNAVAILABLE,
            Kind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            // A declined payment, for one: asking again does not help.
            _ if error.last_fault().class() == Class::Business => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_GATEWAY,
        };
        let retry_after_seconds = error.retry_after().map(|wait| wait.as_secs() + 1);
        ApiError { status, error: error.to_string(), retry_after_seconds }
    }
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        ApiError::from(&error)
    }
}

/// The error of a load that several callers waited for.
impl From<SharedWorkError> for ApiError {
    fn from(error: SharedWorkError) -> Self {
        match error.cause::<UpstreamError>() {
            Some(cause) => ApiError::from(cause),
            None => ApiError::internal(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let wait = self.retry_after_seconds.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        (self.status, wait, Json(self)).into_response()
    }
}
