//! What the hub does: one file for each verb.

mod accept;
mod alerts;
mod audit;
mod bridge;
mod call;
mod change_key;
mod circuits;
mod context;
mod dead_letters;
mod dispatch;
mod evaluate;
mod gauges;
mod handles;
mod incoming;
mod keys;
mod latency;
pub mod metric_names;
mod observe;
mod panics;
mod reads;
mod render_pool;
mod retain;
mod rule_set;
mod rules;
mod runtime;
mod secrets;
mod services;
mod shared;
mod sources;
mod telemetry;

pub use crate::domain::operation::ReplayMode;
pub use accept::{AcceptError, AcceptedEvent, EventAcceptor, EventData, IncomingEvent, sample_event};
pub use alerts::ChannelTestResult;
pub use call::{CallError, CallMode, CallOutcome, GATEWAY_RULE, GatewayCall, QueuedCall};
pub use change_key::{CREATED, ChangeKey, REPLACED};
pub use circuits::CircuitCommand;
pub use context::{Author, Context};
pub use dead_letters::{
    BulkPreview, BulkRequest, Difference, EditResult, LetterEdit, OperationCommand, ReplayRequest, curl,
    differences, record,
};
pub use dispatch::{
    CallResult, DeliveryDispatcher, FRESH_MAX, GuardedService, PendingDelivery, failure_summary,
};
pub use evaluate::{BACKTEST_MAX, BacktestReport, Evaluation};
pub use gauges::{ServiceBacklog, StoredBacklog};
pub use handles::{
    AlertHandle, BridgeHandle, DeadLetterHandle, GatewayHandle, Handles, HubRuntime, OpsHandle,
    RegistryHandle,
};
pub use keys::ADMIN;
pub use observe::{NoObserver, Observation, Observer};
pub use panics::log_panics;
pub use render_pool::{QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderError, RenderPool};
pub use retain::PruneReport;
pub use rule_set::{
    MatchCounts, MatchResult, RenderedDelivery, RuleCompileError, RuleSet, RuleTiming, compile,
};
pub use services::{DEFAULT_POLICY, PendingPolicy, problems_of_policy};
pub use shared::ChangeError;

/// Returns the wall time.
#[must_use]
pub fn wall_time(clock: &seawall::Clock) -> crate::domain::time::Millis {
    let since = clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crate::domain::time::Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
