//! Who has changed what.

use std::sync::Arc;

use axum::extract::State;
use seawall_api::{AuditEntry, AuditPage, PageQuery};
use seawall_hub_core::domain;

use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

pub(crate) async fn list(
    State(hub): State<Arc<Server>>,
    QueryInput(query): QueryInput<PageQuery>,
) -> ApiResult<AuditPage> {
    let page = hub.ops.audit(page_of(&query)).await?;
    let view = |entry: &domain::audit::AuditEntry| AuditEntry {
        at: entry.at.to_string().into(),
        who: entry.who.clone(),
        action: entry.action.clone(),
        target: entry.target.clone(),
        reason: entry.reason.clone(),
        trace_id: entry.trace.clone(),
    };
    let entries = page.items.iter().map(view).collect();
    Ok(ApiReply::new(AuditPage { entries, next_page_token: next_token(&page) }))
}
