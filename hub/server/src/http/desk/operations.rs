//! Work on many dead letters that goes on, or has ended.

use axum::body::Bytes;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::port::store::Page;
use seawall_hub_core::service::OperationCommand;
use serde_json::Value;

use super::super::access::Caller;
use super::super::context::RequestContext;
use super::super::query::{Query, paged};
use super::super::reply::{missing, refused, store_problem, success};
use super::super::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use super::{end, fields_of, reason, shown};
use crate::hub::Server;

const VERBS: &str = "pause, resume, cancel";

pub(in crate::http) async fn list(cx: RequestContext, RawQuery(query): RawQuery) -> HandlerResult {
    let mut query = Query::new(query.as_deref());
    let page = query.page();
    query.end("page_size, page_token")?;
    Ok(match cx.hub.dead_letters.operations(page).await {
        Ok(mut page) => {
            // A page may be short, and is not the last one for that.
            page.items.retain(|operation| sees(&cx.caller, operation));
            let mut shown = Vec::with_capacity(page.items.len());
            for operation in &page.items {
                shown.push(operation_of(&cx.hub, operation).await?);
            }
            let page = Page { items: shown, next: page.next };
            success(StatusCode::OK, &paged(&page, "operations", Value::clone))
        }
        Err(error) => store_problem(&error),
    })
}

pub(in crate::http) async fn get(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let operation = find(&cx.hub, &cx.caller, &id).await?;
    Ok(success(StatusCode::OK, &operation_of(&cx.hub, &operation).await?))
}

/// `POST …/operations/{id}:pause`, `:resume`, `:cancel`.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(named): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let Some((id, verb)) = split_verb(&named) else { return Ok(nothing_here()) };
    let steering = match verb {
        "pause" => OperationCommand::Pause,
        "resume" => OperationCommand::Resume,
        "cancel" => OperationCommand::Cancel,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let mut fields = fields_of(&body)?;
    let reason = reason(&mut fields);
    end(fields, "reason")?;
    let operation = find(&cx.hub, &cx.caller, id).await?;
    Ok(match cx.hub.dead_letters.command_operation(&cx.with_reason(reason), operation.id, steering).await {
        Ok(operation) => success(StatusCode::OK, &operation_of(&cx.hub, &operation).await?),
        Err(why) => refused(why, "operation"),
    })
}

/// An operation as it is answered.
pub(super) async fn operation_of(hub: &Server, operation: &Operation) -> Result<Value, EarlyResponse> {
    shown::operation(hub, operation).await.map_err(|error| store_problem(&error).into())
}

/// Work that is for the caller to see. What is not answers exactly like one that is not there.
async fn find(hub: &Server, caller: &Caller, id: &str) -> Result<Operation, EarlyResponse> {
    let Some(id) = OperationId::parse(id) else { return Err(missing("operation").into()) };
    match hub.dead_letters.operation(id).await {
        Ok(Some(operation)) if sees(caller, &operation) => Ok(operation),
        Ok(_) => Err(missing("operation").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

/// Whether all that it may touch is for the caller to see.
fn sees(caller: &Caller, operation: &Operation) -> bool {
    let (touched, seen) = (&operation.filter.within, caller.within());
    inside(touched.services.as_deref(), seen.services.as_deref())
        && inside(touched.sources.as_deref(), seen.sources.as_deref())
}

/// Nothing stands for all of them.
fn inside<T: PartialEq>(touched: Option<&[T]>, seen: Option<&[T]>) -> bool {
    let all = |seen: &[T]| touched.is_some_and(|touched| touched.iter().all(|one| seen.contains(one)));
    seen.is_none_or(all)
}
