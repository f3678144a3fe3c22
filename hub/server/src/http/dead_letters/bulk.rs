//! Actions on many dead letters at once.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use seawall_api::{BulkInput, BulkOptions, Canary, Preview, PurgeInput, ReplayGroupInput, ReplayManyInput};
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::operation::{BulkAction, ReplayPlan};
use seawall_hub_core::service::{BulkPreview, BulkRequest};

use super::{because, filter, letters, mode, operations, view};
use crate::http::bridge::events::idempotency_key;
use crate::http::context::RequestContext;
use crate::http::error::{ApiError, refused};
use crate::http::input::Input;
use crate::http::reply::ApiReply;
use crate::hub::Server;

/// `POST …/deadLetters:replay` with a filter and the options of the replay.
pub(crate) async fn replay(
    cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let mut input = Input::<ReplayManyInput>::optional(&body)?;
    filter::check(&mut input);
    let ReplayManyInput { filter, replay } = input.finish()?;
    BulkCommand::replay(replay).run(&cx, &headers, filter::to_domain(filter, &cx.caller)).await
}

/// `POST …/deadLetters:purge` with a filter; without `force` it is a dry run.
pub(crate) async fn purge(cx: RequestContext, headers: HeaderMap, body: Bytes) -> Result<Response, ApiError> {
    let mut input = Input::<PurgeInput>::optional(&body)?;
    filter::check(&mut input);
    let PurgeInput { filter, force, max, reason } = input.finish()?;
    // A purge can't be undone, so it has to be insisted on.
    let is_dry_run = !force.unwrap_or(false);
    let command = BulkCommand { action: BulkAction::Purge, max, is_dry_run, reason };
    command.run(&cx, &headers, filter::to_domain(filter, &cx.caller)).await
}

/// Defines a handler for each action that needs nothing but a filter: `POST …/deadLetters:park` and so on.
macro_rules! handlers {
    ($($name:ident => $action:expr;)*) => {$(
        pub(crate) async fn $name(cx: RequestContext, headers: HeaderMap, body: Bytes) -> Result<Response, ApiError> {
            run(&cx, &headers, &body, $action).await
        }
    )*};
}

handlers! {
    park => BulkAction::Park;
    unpark => BulkAction::Unpark;
    delete => BulkAction::Delete;
    restore => BulkAction::Restore;
}

async fn run(
    cx: &RequestContext,
    headers: &HeaderMap,
    body: &Bytes,
    action: BulkAction,
) -> Result<Response, ApiError> {
    let mut input = Input::<BulkInput>::optional(body)?;
    filter::check(&mut input);
    let BulkInput { filter, options } = input.finish()?;
    BulkCommand::new(action, options).run(cx, headers, filter::to_domain(filter, &cx.caller)).await
}

/// A bulk action that a client asks for.
pub(super) struct BulkCommand {
    action: BulkAction,
    /// The maximum number of dead letters; `None` means no limit.
    max: Option<u64>,
    is_dry_run: bool,
    reason: Option<String>,
}

impl BulkCommand {
    pub(super) fn replay(input: ReplayGroupInput) -> Self {
        let plan = ReplayPlan {
            mode: mode(input.mode.as_ref()),
            rate: input.rate_per_second.unwrap_or(ReplayPlan::RATE),
            canary: match input.canary {
                None | Some(Canary::Switch(true)) => ReplayPlan::CANARY.to_vec(),
                Some(Canary::Switch(false)) => Vec::new(),
                Some(Canary::Stages(stages)) => stages,
            },
        };
        Self::new(BulkAction::Replay(plan), input.options)
    }

    fn new(action: BulkAction, options: BulkOptions) -> Self {
        let BulkOptions { max, dry_run, reason } = options;
        BulkCommand { action, max, is_dry_run: dry_run.unwrap_or(false), reason }
    }

    /// Counts what it would change, or starts the operation.
    pub(super) async fn run(
        self,
        cx: &RequestContext,
        headers: &HeaderMap,
        filter: LetterFilter,
    ) -> Result<Response, ApiError> {
        let BulkCommand { action: task, max: limit, is_dry_run, reason } = self;
        let key = idempotency_key(headers, &cx.caller)?;
        if is_dry_run {
            let found = cx.hub.dead_letters.preview(&task, filter).await.map_err(refused(letters::NOUN))?;
            return Ok(ApiReply::new(preview(&cx.hub, &found, limit)).into_response());
        }
        let request = BulkRequest { task, filter, limit, key };
        let started = cx.hub.dead_letters.start_operation(&because(cx, reason), &request).await;
        let operation = started.map_err(refused(operations::NOUN))?;
        Ok(ApiReply::accepted(view::operation(&cx.hub, &operation).await?).into_response())
    }
}

fn preview(hub: &Server, preview: &BulkPreview, max: Option<u64>) -> Preview {
    let (found, max) = (preview.found, max.unwrap_or(u64::MAX));
    Preview {
        dry_run: true,
        count: found.count.min(max),
        count_is_exact: found.all || found.count >= max,
        unindexed: found.unindexed,
        sample: preview.sample.iter().map(|dead| view::letter(hub, dead)).collect(),
    }
}
