//! Work on many dead letters at once.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use seawall_hub_core::domain::letter::LetterFilter;
use seawall_hub_core::domain::operation::{Plan, Task};
use seawall_hub_core::service::{Preview, Work, because};
use serde_json::{Value, json};

use super::super::Caught;
use super::super::access::Caller;
use super::super::events::idempotency_key;
use super::super::fields::Fields;
use super::super::reply::{refused, success};
use super::operations::operation_of;
use super::{end, fields_of, filter, mode, reason, shown};
use crate::hub::Hub;

/// More than there can ever be.
const MAX: u64 = 1_000_000_000;
/// So many stages can a canary have.
const STAGES_MAX: usize = 8;

/// A handler for each task: `POST …/deadLetters:replay` and so on.
macro_rules! handlers {
    ($($name:ident => $task:expr;)*) => {$(
        pub(in crate::http) async fn $name(
            State(hub): State<Arc<Hub>>,
            Extension(caller): Extension<Caller>,
            headers: HeaderMap,
            body: Bytes,
        ) -> Caught {
            begin(&hub, &caller, &headers, &body, $task).await
        }
    )*};
}

handlers! {
    replay => None;
    park => Some(Task::Park);
    unpark => Some(Task::Unpark);
    delete => Some(Task::Delete);
    restore => Some(Task::Restore);
    purge => Some(Task::Purge);
}

/// A task that is none is a replay, whose plan is in the body.
async fn begin(hub: &Hub, caller: &Caller, headers: &HeaderMap, body: &Bytes, task: Option<Task>) -> Caught {
    let mut fields = fields_of(body)?;
    let filter = match fields.group("filter") {
        Some(mut group) => {
            let filter = filter::letters_or_ids(&mut group, caller);
            fields.within("filter", group, &format!("{}, ids", filter::NAMES));
            filter
        }
        None => {
            let reason = "it is missing: say which, such as `{\"service\": \"billing\"}`, or `{}` for all";
            fields.wrong("filter", reason);
            LetterFilter::default()
        }
    };
    let wanted = Wanted::read(&mut fields, task);
    end(fields, &format!("filter, {}", wanted.known()))?;
    wanted.done(hub, caller, headers, filter).await
}

/// What is to be done, to how many, and whether somebody only wants to see.
pub(super) struct Wanted {
    task: Task,
    most: Option<u64>,
    dry: bool,
    reason: Option<String>,
}

impl Wanted {
    pub(super) fn read(fields: &mut Fields, task: Option<Task>) -> Self {
        let most = fields.number("max", 1, MAX);
        // What goes for good goes only if somebody insists.
        let dry = match task {
            Some(Task::Purge) => !fields.switch("force", false),
            _ => fields.switch("dryRun", false),
        };
        let reason = reason(fields);
        Wanted { task: task.unwrap_or_else(|| Task::Replay(plan(fields))), most, dry, reason }
    }

    /// The fields that it knows.
    pub(super) const fn known(&self) -> &'static str {
        match self.task {
            Task::Replay(_) => "dryRun, max, ratePerSecond, canary, mode, reason",
            Task::Purge => "force, max, reason",
            _ => "dryRun, max, reason",
        }
    }

    /// Shows what it would be, or begins.
    pub(super) async fn done(
        self,
        hub: &Hub,
        caller: &Caller,
        headers: &HeaderMap,
        filter: LetterFilter,
    ) -> Caught {
        let Wanted { task, most, dry, reason } = self;
        let key = idempotency_key(headers, caller)?;
        if dry {
            return Ok(match hub.preview(&task, filter).await {
                Ok(preview) => success(StatusCode::OK, &previewed(hub, &preview, most)),
                Err(why) => refused(why, "dead letter"),
            });
        }
        Ok(match because(reason, hub.begin_work(&Work { task, filter, most, key })).await {
            Ok(operation) => success(StatusCode::ACCEPTED, &operation_of(hub, &operation).await?),
            Err(why) => refused(why, "operation"),
        })
    }
}

fn previewed(hub: &Hub, preview: &Preview, most: Option<u64>) -> Value {
    let (found, most) = (preview.found, most.unwrap_or(u64::MAX));
    let sample: Vec<Value> = preview.sample.iter().map(|dead| shown::letter(hub, dead)).collect();
    json!({
        "dryRun": true, "count": found.count.min(most), "countIsExact": found.all || found.count >= most,
        "unindexed": found.unindexed, "sample": sample,
    })
}

fn plan(fields: &mut Fields) -> Plan {
    let mode = mode(fields);
    let rate = fields.number("ratePerSecond", 1, u64::from(Plan::RATE_MAX));
    let rate = rate.and_then(|rate| u32::try_from(rate).ok()).unwrap_or(Plan::RATE);
    let canary = match fields.any("canary") {
        None | Some(Value::Bool(true)) => Plan::CANARY.to_vec(),
        Some(Value::Bool(false)) => Vec::new(),
        Some(stages) => stages_of(&stages).unwrap_or_else(|| {
            let reason = format!(
                "it is true for [1, 10], false for none, or a list of up to {STAGES_MAX} counts, each at least 1"
            );
            fields.wrong("canary", reason);
            Vec::new()
        }),
    };
    Plan { mode, rate, canary }
}

fn stages_of(stages: &Value) -> Option<Vec<u32>> {
    let count =
        |stage: &Value| stage.as_u64().and_then(|stage| u32::try_from(stage).ok()).filter(|stage| *stage > 0);
    stages.as_array().filter(|stages| (1..=STAGES_MAX).contains(&stages.len()))?.iter().map(count).collect()
}
