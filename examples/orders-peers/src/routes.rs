//! The HTTP side: routes, and what becomes of errors.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;

use crate::App;
use crate::catalogue::Product;
use crate::guard::CallError;
use crate::inventory::Stock;
use crate::orders::{self, NewOrder, PlacedOrder};
use crate::prices::Price;

type Answer<T> = Result<Json<T>, ApiError>;

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/stock/{sku}", get(stock))
        .route("/prices/{sku}", get(price))
        .route("/products/{sku}", get(product))
        .route("/orders", post(place))
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

fn found<T>(value: Option<T>, sku: &str) -> Answer<T> {
    value.map(Json).ok_or_else(|| ApiError::not_found(format!("no product `{sku}`")))
}

/// What a caller is told.
#[derive(Debug, Serialize)]
pub struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    error: String,
}

impl ApiError {
    pub fn not_found(error: String) -> Self {
        ApiError { status: StatusCode::NOT_FOUND, error }
    }

    pub fn conflict(error: String) -> Self {
        ApiError { status: StatusCode::CONFLICT, error }
    }
}

impl From<&CallError> for ApiError {
    fn from(error: &CallError) -> Self {
        let status = match error {
            CallError::Rejected => StatusCode::SERVICE_UNAVAILABLE,
            CallError::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            // A declined payment, for one: asking again does not help.
            CallError::Http(error) if error.status().is_some_and(|status| status.is_client_error()) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            CallError::Http(_) => StatusCode::BAD_GATEWAY,
        };
        ApiError { status, error: error.to_string() }
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        ApiError::from(&error)
    }
}

/// The error of a load that several callers waited for.
impl From<Arc<CallError>> for ApiError {
    fn from(error: Arc<CallError>) -> Self {
        ApiError::from(&*error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}
