//! Who has changed what.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::port::store::Store;
use serde_json::json;

use super::Caught;
use super::query::{Query, paged};
use super::reply::{store_problem, success};
use crate::hub::Hub;

pub(super) async fn list(State(hub): State<Arc<Hub>>, RawQuery(query): RawQuery) -> Caught {
    let mut query = Query::new(query.as_deref());
    let page = query.page();
    query.end("page_size, page_token")?;
    Ok(match hub.store().audit(page).await {
        Ok(page) => {
            let shown = |entry: &AuditEntry| {
                json!({
                    "at": entry.at.to_string(), "who": entry.who, "action": entry.action, "target": entry.target,
                    "reason": entry.reason, "traceId": entry.trace,
                })
            };
            success(StatusCode::OK, &paged(&page, "entries", shown))
        }
        Err(error) => store_problem(&error),
    })
}
