//! What the hub does: a folder for each noun of its users, with a handle for each ([`handles`]).

mod alerts;
mod audit;
mod bridge;
mod context;
mod dead_letters;
mod dispatch;
mod gateway;
mod handles;
mod observe;
mod ops;
mod panics;
mod registry;
mod runtime;
mod shared;

pub use crate::domain::operation::ReplayMode;
pub use alerts::ChannelTestResult;
pub use bridge::{
    AcceptError, AcceptedEvent, BACKTEST_MAX, BacktestReport, Evaluation, EventAcceptor, EventData,
    IncomingEvent, MatchCounts, MatchResult, QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderError, RenderPool,
    RenderedDelivery, RuleCompileError, RuleSet, RuleTiming, compile, sample_event,
};
pub use context::{Author, Context};
pub use dead_letters::{
    BulkPreview, BulkRequest, Difference, EditResult, LetterEdit, OperationCommand, ReplayRequest, curl,
    differences, record,
};
pub use dispatch::{CallResult, DeliveryDispatcher, FRESH_MAX, GuardedService, PendingDelivery};
pub use gateway::{CallError, CallMode, CallOutcome, CircuitCommand, GATEWAY_RULE, GatewayCall, QueuedCall};
pub use handles::{
    AlertHandle, BridgeHandle, DeadLetterHandle, GatewayHandle, Handles, HubRuntime, OpsHandle,
    RegistryHandle,
};
pub use observe::{NoObserver, Observation, Observer};
pub use ops::{PruneReport, ServiceBacklog, StoredBacklog};
pub use panics::log_panics;
pub use registry::{ADMIN, CREATED, ChangeKey, DEFAULT_POLICY, PendingPolicy, REPLACED, problems_of_policy};
pub use shared::ChangeError;

/// Returns the wall time.
#[must_use]
pub fn wall_time(clock: &seawall::Clock) -> crate::domain::time::Millis {
    let since = clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crate::domain::time::Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
