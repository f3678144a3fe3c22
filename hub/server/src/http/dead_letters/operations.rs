//! Bulk operations on dead letters.

use axum::body::Bytes;
use axum::extract::Path;
use seawall_api::{self as wire, OperationPage, PageQuery, ReasonInput};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::service::OperationCommand;

use super::{because, view};
use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(page): QueryInput<PageQuery>,
) -> ApiResult<OperationPage> {
    let page = cx.hub.dead_letters.operations(page_of(&page)).await?;
    let mut operations = Vec::with_capacity(page.items.len());
    // A page may be short, and is not the last one for that.
    for operation in page.items.iter().filter(|operation| sees(&cx.caller, operation)) {
        operations.push(view::operation(&cx.hub, operation).await?);
    }
    Ok(ApiReply::new(OperationPage { operations, next_page_token: next_token(&page) }))
}

pub(crate) async fn get(cx: RequestContext, Path(id): Path<String>) -> ApiResult<wire::Operation> {
    Ok(ApiReply::new(view::operation(&cx.hub, &find(&cx, &id).await?).await?))
}

/// Defines a handler for each command: `POST …/operations/{id}:pause` and so on.
macro_rules! commands {
    ($($name:ident => $command:expr;)+) => {$(
        pub(crate) async fn $name(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<wire::Operation> {
            run(&cx, &target, &body, $command).await
        }
    )+};
}

commands! {
    pause => OperationCommand::Pause;
    resume => OperationCommand::Resume;
    cancel => OperationCommand::Cancel;
}

async fn run(
    cx: &RequestContext,
    id: &str,
    body: &Bytes,
    command: OperationCommand,
) -> ApiResult<wire::Operation> {
    let ReasonInput { reason } = Input::<ReasonInput>::optional(body)?.finish()?;
    let operation = find(cx, id).await?;
    let changed = cx.hub.dead_letters.command_operation(&because(cx, reason), operation.id, command).await;
    Ok(ApiReply::new(view::operation(&cx.hub, &changed.map_err(refused(NOUN))?).await?))
}

/// What an operation is called in messages.
pub(super) const NOUN: &str = "operation";

/// An operation that the caller may see. Any other looks as if it did not exist.
async fn find(cx: &RequestContext, id: &str) -> Result<Operation, ApiError> {
    let missing = || ApiError::missing(NOUN);
    let found = cx.hub.dead_letters.operation(OperationId::parse(id).ok_or_else(missing)?).await?;
    found.filter(|operation| sees(&cx.caller, operation)).ok_or_else(missing)
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
