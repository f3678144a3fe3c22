#![doc = include_str!("../docs/api.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alert;
mod bulk;
mod channel;
mod common;
mod dead_letter;
mod delivery;
mod error;
mod event;
mod gateway;
mod group;
mod key;
mod letter_input;
mod ops;
mod page;
mod rule;
mod secret;
mod service;
mod source;
mod status;
#[cfg(test)]
mod tests;
mod text;
mod word;

pub use alert::{
    Acknowledgement, Alert, AlertPage, AlertQuery, AlertRule, AlertRuleDeleted, AlertRuleSpec, AlertState,
    ConditionKind, Mute, MuteInput, Notification, NotificationKind, NotificationState, Severity,
};
pub use bulk::{
    BulkInput, BulkOptions, BulkResult, BulkTask, Canary, DeadLetterFilter, LetterStates, Operation,
    OperationPage, OperationProgress, OperationState, Preview, PurgeInput, ReplayGroupInput, ReplayManyInput,
    ReplayPlan,
};
pub use channel::{AlertChannel, AlertChannelSpec, AlertChannelTested, ChannelSettings, TlsMode};
pub use common::{Deleted, Headers, PageQuery, Policy, Reason, RequiredReason, WaitFields, WaitReason};
pub use dead_letter::{
    DeadLetter, DeadLetterDeleted, DeadLetterPage, DeadLetterPurged, DeadLetterQuery, DeadLetterWithEvidence,
    Difference, EditResult, ExportQuery, FailureFilter, LetterQuery, LetterState, ReplayMode, ReplayResult,
    ReplayState, SearchState,
};
pub use delivery::{
    Attempt, DeadLetterReason, Delivery, DeliveryPage, DeliveryQuery, DeliveryState, DeliveryStateFilter,
    DeliveryWithAttempts, SentRequest,
};
pub use error::{ERRORS, Envelope, ErrorBody, ErrorCode, ErrorEntry, FieldProblem};
pub use event::{
    AcceptedBatch, AcceptedEvent, BatchResult, Event, EventBatch, EventContent, EventInput, EventPage,
    EventQuery, Refusal, RefusalCode, RefusedEvent,
};
pub use gateway::{
    BodyEncoding, CallFailure, CallInput, CallMode, CallQuery, CallResponse, CallResult, HeaderValue,
    QueryValue, QueuedCall,
};
pub use group::{
    DeadLetterGroup, DeadLetterGroupPage, DeadLetterGroupWithSample, GroupQuery, GroupState, GroupStateInput,
    LetterCounts,
};
pub use key::{CreatedKey, Key, KeySpec, RotateInput, Scope};
pub use letter_input::{EditInput, NoteInput, ReasonInput, ReplayInput, ReplayOptions, RequestEdit};
pub use ops::{
    AuditEntry, AuditPage, Health, HealthState, HealthStatus, KeyRotation, Measurement, Metric, MetricNames,
    MetricQuery, MetricTag, ServiceCircuit,
};
pub use page::Listing;
pub use rule::{
    Backtest, BacktestInput, BacktestSample, DeliverySettings, EvaluateInput, Evaluation, FailureCounting,
    OnDeadLetter, OrderingSettings, Request, RollbackInput, Rule, RuleSpec,
};
pub use secret::{Auth, Exposed, FormerSecrets, HIDDEN, SecretText, SignatureEncoding, WriteOnly};
pub use service::{
    Circuit, CircuitChange, CircuitDetails, CircuitMove, CircuitState, CircuitWindow, DeleteQuery,
    FaultClass, PendingPolicy, Service, ServiceSpec, ServiceType, TestRequest, TestResult,
};
pub use source::{Source, SourceSpec, Verify};
pub use status::{
    AttentionItem, AttentionKind, AttentionSeverity, DeadLetterTotals, DeliveryTotals, EventTotals,
    FaultCounts, History, HistoryPoint, HistoryQuery, HistoryRange, Overview, Retention, ServiceDeadLetters,
    ServiceStatus, ServiceStatusPage, ServiceStatusQuery, ServiceTotals, StatusSort,
};
pub use text::{
    BaseUrl, DeliveryId, DurationText, EventId, EventPattern, EventType, Filter, Fingerprint, Name,
    OperationId, RequestPath, TagFilter, Template, Timestamp,
};
