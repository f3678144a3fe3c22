//! Bulk operations on dead letters.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use seawall_api::{self as wire, OperationPage, PageQuery, ReasonInput};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::service::OperationCommand;

use super::{because, view};
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{missing, refused, store_problem, success};
use crate::http::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

const VERBS: &str = "pause, resume, cancel";

pub(in crate::http) async fn list(
    cx: RequestContext,
    QueryInput(page): QueryInput<PageQuery>,
) -> HandlerResult {
    Ok(match cx.hub.dead_letters.operations(page_of(&page)).await {
        Ok(page) => {
            let mut operations = Vec::with_capacity(page.items.len());
            // A page may be short, and is not the last one for that.
            for operation in page.items.iter().filter(|operation| sees(&cx.caller, operation)) {
                operations.push(operation_of(&cx.hub, operation).await?);
            }
            success(StatusCode::OK, &OperationPage { operations, next_page_token: next_token(&page) })
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
    Path(id_verb): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let Some((id, verb)) = split_verb(&id_verb) else { return Ok(nothing_here()) };
    let command = match verb {
        "pause" => OperationCommand::Pause,
        "resume" => OperationCommand::Resume,
        "cancel" => OperationCommand::Cancel,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let ReasonInput { reason } = Input::<ReasonInput>::optional(&body)?.finish()?;
    let operation = find(&cx.hub, &cx.caller, id).await?;
    Ok(match cx.hub.dead_letters.command_operation(&because(&cx, reason), operation.id, command).await {
        Ok(operation) => success(StatusCode::OK, &operation_of(&cx.hub, &operation).await?),
        Err(why) => refused(why, "operation"),
    })
}

/// An operation as it is returned.
pub(super) async fn operation_of(
    hub: &Server,
    operation: &Operation,
) -> Result<wire::Operation, EarlyResponse> {
    view::operation(hub, operation).await.map_err(|error| store_problem(&error).into())
}

/// An operation that the caller may see. Any other looks as if it did not exist.
async fn find(hub: &Server, caller: &Caller, id: &str) -> Result<Operation, EarlyResponse> {
    let Some(id) = OperationId::parse(id) else { return Err(missing("operation").into()) };
    match hub.dead_letters.operation(id).await {
        Ok(Some(operation)) if sees(caller, &operation) => Ok(operation),
        Ok(_) => Err(missing("operation").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

/// True if the caller may see all that the operation may change.
fn sees(caller: &Caller, operation: &Operation) -> bool {
    let (changed, seen) = (&operation.filter.within, caller.within());
    is_within(changed.services.as_deref(), seen.services.as_deref())
        && is_within(changed.sources.as_deref(), seen.sources.as_deref())
}

/// True if all of the first are among the second. `None` stands for all that there are.
fn is_within<T: PartialEq>(some: Option<&[T]>, all: Option<&[T]>) -> bool {
    all.is_none_or(|all| some.is_some_and(|some| some.iter().all(|one| all.contains(one))))
}
