//! Work on many dead letters at once.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::operation::{BulkAction, ReplayPlan};
use seawall_hub_core::service::{BulkPreview, BulkRequest};
use serde_json::{Value, json};

use super::super::HandlerResult;
use super::super::context::RequestContext;
use super::super::events::idempotency_key;
use super::super::fields::Fields;
use super::super::reply::{refused, success};
use super::operations::operation_of;
use super::{end, fields_of, filter, mode, reason, shown};
use crate::hub::Server;

/// More than there can ever be.
const MAX: u64 = 1_000_000_000;
/// The maximum number of canary stages.
const STAGES_MAX: usize = 8;

/// A handler for each task: `POST …/deadLetters:replay` and so on.
macro_rules! handlers {
    ($($name:ident => $task:expr;)*) => {$(
        pub(in crate::http) async fn $name(
            cx: RequestContext, headers: HeaderMap,
            body: Bytes,
        ) -> HandlerResult {
            begin(&cx, &headers, &body, $task).await
        }
    )*};
}

handlers! {
    replay => None;
    park => Some(BulkAction::Park);
    unpark => Some(BulkAction::Unpark);
    delete => Some(BulkAction::Delete);
    restore => Some(BulkAction::Restore);
    purge => Some(BulkAction::Purge);
}

/// A task that is none is a replay, whose plan is in the body.
async fn begin(
    cx: &RequestContext,
    headers: &HeaderMap,
    body: &Bytes,
    task: Option<BulkAction>,
) -> HandlerResult {
    let mut fields = fields_of(body)?;
    let filter = match fields.group("filter") {
        Some(mut group) => {
            let filter = filter::letters_or_ids(&mut group, &cx.caller);
            fields.within("filter", group, &format!("{}, ids", filter::NAMES));
            filter
        }
        None => {
            let reason = "required: a filter such as `{\"service\": \"billing\"}`, or `{}` for all";
            fields.wrong("filter", reason);
            LetterFilter::default()
        }
    };
    let wanted = BulkBody::read(&mut fields, task);
    end(fields, &format!("filter, {}", wanted.known()))?;
    wanted.done(cx, headers, filter).await
}

/// What is to be done, to how many, and whether somebody only wants to see.
pub(super) struct BulkBody {
    task: BulkAction,
    most: Option<u64>,
    dry: bool,
    reason: Option<String>,
}

impl BulkBody {
    pub(super) fn read(fields: &mut Fields, task: Option<BulkAction>) -> Self {
        let most = fields.number("max", 1, MAX);
        // What goes for good goes only if somebody insists.
        let dry = match task {
            Some(BulkAction::Purge) => !fields.switch("force", false),
            _ => fields.switch("dryRun", false),
        };
        let reason = reason(fields);
        BulkBody { task: task.unwrap_or_else(|| BulkAction::Replay(plan(fields))), most, dry, reason }
    }

    /// The fields that it knows.
    pub(super) const fn known(&self) -> &'static str {
        match self.task {
            BulkAction::Replay(_) => "dryRun, max, ratePerSecond, canary, mode, reason",
            BulkAction::Purge => "force, max, reason",
            _ => "dryRun, max, reason",
        }
    }

    /// Shows what it would be, or begins.
    pub(super) async fn done(
        self,
        cx: &RequestContext,
        headers: &HeaderMap,
        filter: LetterFilter,
    ) -> HandlerResult {
        let BulkBody { task, most, dry, reason } = self;
        let key = idempotency_key(headers, &cx.caller)?;
        if dry {
            return Ok(match cx.hub.dead_letters.preview(&task, filter).await {
                Ok(preview) => success(StatusCode::OK, &previewed(&cx.hub, &preview, most)),
                Err(why) => refused(why, "dead letter"),
            });
        }
        Ok(
            match cx
                .hub
                .dead_letters
                .start_operation(&cx.with_reason(reason), &BulkRequest { task, filter, most, key })
                .await
            {
                Ok(operation) => success(StatusCode::ACCEPTED, &operation_of(&cx.hub, &operation).await?),
                Err(why) => refused(why, "operation"),
            },
        )
    }
}

fn previewed(hub: &Server, preview: &BulkPreview, most: Option<u64>) -> Value {
    let (found, most) = (preview.found, most.unwrap_or(u64::MAX));
    let sample: Vec<Value> = preview.sample.iter().map(|dead| shown::letter(hub, dead)).collect();
    json!({
        "dryRun": true, "count": found.count.min(most), "countIsExact": found.all || found.count >= most,
        "unindexed": found.unindexed, "sample": sample,
    })
}

fn plan(fields: &mut Fields) -> ReplayPlan {
    let mode = mode(fields);
    let rate = fields.number("ratePerSecond", 1, u64::from(ReplayPlan::RATE_MAX));
    let rate = rate.and_then(|rate| u32::try_from(rate).ok()).unwrap_or(ReplayPlan::RATE);
    let canary = match fields.any("canary") {
        None | Some(Value::Bool(true)) => ReplayPlan::CANARY.to_vec(),
        Some(Value::Bool(false)) => Vec::new(),
        Some(stages) => stages_of(&stages).unwrap_or_else(|| {
            let reason = format!(
                "must be true for [1, 10], false for none, or a list of up to {STAGES_MAX} counts, each at least 1"
            );
            fields.wrong("canary", reason);
            Vec::new()
        }),
    };
    ReplayPlan { mode, rate, canary }
}

fn stages_of(stages: &Value) -> Option<Vec<u32>> {
    let count =
        |stage: &Value| stage.as_u64().and_then(|stage| u32::try_from(stage).ok()).filter(|stage| *stage > 0);
    stages.as_array().filter(|stages| (1..=STAGES_MAX).contains(&stages.len()))?.iter().map(count).collect()
}
