//! What each route takes and gives: a row for each row of the table of routes.
//!
//! A new route needs a row here, and a test says so if it has none. What all have in common is added by
//! [`document`](super::document::document): the key, the errors of keys, of bodies, of names in paths and of the store.

use axum::http::Method;

use super::schema::{Schema, any, list, one_of, shape, text};

/// What a route takes and gives.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Beside those in the path: names from the list of parameters.
    pub(super) parameters: Vec<&'static str>,
    /// Bodies by their type.
    pub(super) takes: Vec<(&'static str, Schema)>,
    /// Whether there must be one.
    pub(super) needs_body: bool,
    pub(super) gives: Vec<Gives>,
    /// Codes of errors beside those that all have.
    pub(super) codes: Vec<&'static str>,
    /// More about it.
    pub(super) more: &'static str,
    /// Whether the store is asked.
    pub(super) stored: bool,
}

/// An answer that is a success.
pub(super) struct Gives {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) schema: Schema,
    /// In the envelope that everything has.
    pub(super) enveloped: bool,
    /// With the header `ETag`.
    pub(super) versioned: bool,
}

const JSON: &str = "application/json";

impl Operation {
    pub(super) fn takes(mut self, name: &str) -> Self {
        self.takes.push((JSON, shape(name)));
        self.needs_body = true;
        self
    }

    /// What need not be there is an empty object.
    pub(super) fn may_take(mut self, name: &str) -> Self {
        self.takes.push((JSON, shape(name)));
        self
    }

    fn takes_also(mut self, kind: &'static str, schema: Schema) -> Self {
        self.takes.push((kind, schema));
        self
    }

    pub(super) fn gives(self, status: u16, name: &str) -> Self {
        self.gives_this(status, shape(name))
    }

    fn gives_this(mut self, status: u16, schema: Schema) -> Self {
        self.gives.push(Gives { status, kind: JSON, schema, enveloped: true, versioned: false });
        self
    }

    /// Without the envelope.
    pub(super) fn gives_plain(mut self, kind: &'static str, schema: Schema) -> Self {
        self.gives.push(Gives { status: 200, kind, schema, enveloped: false, versioned: false });
        self
    }

    fn versioned(mut self) -> Self {
        self.gives.iter_mut().for_each(|gives| gives.versioned = true);
        self
    }

    pub(super) fn with(mut self, parameters: &[&'static str]) -> Self {
        self.parameters.extend(parameters);
        self
    }

    pub(super) fn fails(mut self, codes: &[&'static str]) -> Self {
        self.codes.extend(codes);
        self
    }

    pub(super) fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// What it knows is in memory: no error of the store.
    fn in_memory(mut self) -> Self {
        self.stored = false;
        self
    }
}

pub(super) fn op(method: Method, path: &'static str) -> Operation {
    Operation {
        method,
        path,
        parameters: Vec::new(),
        takes: Vec::new(),
        needs_body: false,
        gives: Vec::new(),
        codes: Vec::new(),
        more: "",
        stored: true,
    }
}

pub(super) const GET: Method = Method::GET;
pub(super) const POST: Method = Method::POST;
const PUT: Method = Method::PUT;
pub(super) const PATCH: Method = Method::PATCH;
pub(super) const DELETE: Method = Method::DELETE;

/// Of something that has versions.
const VERSIONS: &[&str] = &["If-Match", "If-None-Match"];
const CHANGE_FAILS: &[&str] = &["badVersion", "stale", "invalid"];
pub(super) const PAGE: &[&str] = &["page_size", "page_token"];

/// All of them.
pub(super) fn operations() -> Vec<Operation> {
    let parts = [
        services(),
        rules(),
        sources(),
        keys(),
        gateway(),
        events(),
        deliveries(),
        super::desk::operations(),
        alerts(),
        metrics(),
        open(),
    ];
    parts.into_iter().flatten().collect()
}

#[rustfmt::skip]
fn services() -> Vec<Operation> {
    const ALL: &str = "/api/v1/registry/services";
    const ONE: &str = "/api/v1/registry/services/{name}";
    vec![
        op(GET, ALL).gives_this(200, list(shape("Service"))).in_memory(),
        op(POST, ALL).takes("ServiceInput").gives(201, "Service").gives(200, "Service").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"])
            .more("A service of this name is replaced. Without `auth` it keeps the one before; `auth: null` takes it away"),
        op(GET, ONE).gives(200, "Service").versioned().in_memory(),
        op(PUT, ONE).takes("ServiceReplacement").gives(201, "Service").gives(200, "Service").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        op(PATCH, ONE).takes("ServiceChange").gives(200, "Service").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        op(DELETE, ONE).gives(200, "Deleted").with(&["pending"]).with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"])
            .more("Not while a rule sends to it"),
        op(POST, "/api/v1/registry/services/{name}:test").may_take("Probe").gives(200, "ProbeResult").fails(&["invalid"]).in_memory()
            .more("The request goes through the service's guard, and counts there"),
        op(POST, "/api/v1/registry/services/{name}:pause").gives(200, "Service").versioned().fails(&["stale"]),
        op(POST, "/api/v1/registry/services/{name}:resume").gives(200, "Service").versioned().fails(&["stale"]),
        op(GET, "/api/v1/registry/services/{name}/circuit").gives(200, "Circuit"),
        op(POST, "/api/v1/registry/services/{name}/circuit:reset").may_take("Reason").gives(200, "CircuitMoved").fails(&["invalid"]),
        op(POST, "/api/v1/registry/services/{name}/circuit:forceOpen").takes("ReasonNeeded").gives(200, "CircuitMoved").fails(&["invalid"]),
        op(POST, "/api/v1/registry/services/{name}/circuit:forceClosed").takes("ReasonNeeded").gives(200, "CircuitMoved").fails(&["invalid"]),
    ]
}

#[rustfmt::skip]
fn rules() -> Vec<Operation> {
    const ALL: &str = "/api/v1/registry/rules";
    const ONE: &str = "/api/v1/registry/rules/{name}";
    vec![
        op(GET, ALL).gives_this(200, list(shape("Rule"))).in_memory(),
        op(POST, ALL).takes("RuleInput").gives(201, "Rule").gives(200, "Rule").versioned().with(VERSIONS).fails(CHANGE_FAILS)
            .more("A rule of this name is replaced, and kept as a version before"),
        op(POST, "/api/v1/registry/rules:evaluate").takes("EvaluateInput").gives(200, "Evaluation").fails(&["notFound", "invalid"]),
        op(GET, ONE).gives(200, "Rule").versioned().in_memory(),
        op(PUT, ONE).takes("RuleReplacement").gives(201, "Rule").gives(200, "Rule").versioned().with(VERSIONS).fails(CHANGE_FAILS),
        op(PATCH, ONE).takes("RuleChange").gives(200, "Rule").versioned().with(VERSIONS).fails(CHANGE_FAILS),
        op(DELETE, ONE).gives(200, "Deleted").with(&["pending"]).with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"]),
        op(GET, "/api/v1/registry/rules/{name}/versions").gives_this(200, list(shape("Rule"))),
        op(POST, "/api/v1/registry/rules/{name}:backtest").may_take("BacktestInput").gives(200, "Backtest").fails(&["invalid"]),
        op(POST, "/api/v1/registry/rules/{name}:enable").gives(200, "Rule").versioned().fails(&["notJson", "stale", "invalid"]),
        op(POST, "/api/v1/registry/rules/{name}:disable").may_take("Reason").gives(200, "Rule").versioned().fails(&["stale", "invalid"]),
        op(POST, "/api/v1/registry/rules/{name}:rollback").takes("RollbackInput").gives(200, "Rule").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"])
            .more("What it was then is kept as a new version"),
    ]
}

#[rustfmt::skip]
fn sources() -> Vec<Operation> {
    const ALL: &str = "/api/v1/registry/sources";
    const ONE: &str = "/api/v1/registry/sources/{name}";
    vec![
        op(GET, ALL).gives_this(200, list(shape("Source"))).in_memory(),
        op(POST, ALL).takes("SourceInput").gives(201, "Source").gives(200, "Source").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"])
            .more("A source of this name is replaced"),
        op(GET, ONE).gives(200, "Source").versioned().in_memory(),
        op(PUT, ONE).takes("SourceReplacement").gives(201, "Source").gives(200, "Source").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        op(DELETE, ONE).gives(200, "Deleted").with(VERSIONS).fails(&["badVersion", "stale"]),
    ]
}

#[rustfmt::skip]
fn keys() -> Vec<Operation> {
    const ALL: &str = "/api/v1/registry/keys";
    vec![
        op(GET, ALL).gives_this(200, list(shape("Key"))).in_memory(),
        op(POST, ALL).takes("KeyInput").gives(201, "FreshKey").fails(&["conflict", "invalid"]),
        op(DELETE, "/api/v1/registry/keys/{name}").gives(200, "Key").fails(&["conflict"]),
        op(POST, "/api/v1/registry/keys/{name}:rotate").may_take("RotateInput").gives(200, "FreshKey").fails(&["invalid"]),
    ]
}

fn gateway() -> Vec<Operation> {
    let unanswered = &[
        "rateLimited",
        "circuitOpen",
        "bulkheadFull",
        "memoryFull",
        "responseDropped",
        "paused",
        "timeout",
        "noConnection",
        "broken",
        "impossible",
    ];
    vec![
        op(POST, "/api/v1/gateway/services/{name}:call")
            .takes("CallInput")
            .gives(200, "Answer")
            .gives(202, "CallKept")
            .with(&["Idempotency-Key", "traceparent"])
            .fails(&["badKey", "invalid", "otherContent"])
            .fails(unanswered)
            .more("Through the guard of the service. See docs/gateway.md"),
    ]
}

#[rustfmt::skip]
fn events() -> Vec<Operation> {
    const ALL: &str = "/api/v1/bridge/events";
    const CLOUD_EVENT: &str = "application/cloudevents+json";
    const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";
    vec![
        op(POST, ALL).takes("EventInputWithKey")
            .takes_also(CLOUD_EVENT, shape("CloudEvent")).takes_also(CLOUD_EVENTS, list(shape("CloudEvent")))
            .gives_this(202, one_of(vec![shape("Accepted"), shape("BatchAccepted")]))
            .with(&["Idempotency-Key", "traceparent"]).fails(&["badKey", "invalid", "otherContent"])
            .more("It is on the disk when this answers. The same event again is no second one. Of CloudEvents there is the binary mode too: attributes in headers `ce-…`, data in the body. A batch of several is answered as `:batchCreate` does"),
        op(GET, ALL).gives(200, "EventPage").with(&["type", "source", "unmatched"]).with(PAGE).fails(&["invalid"]),
        op(POST, "/api/v1/bridge/events:batchCreate").takes("EventBatch")
            .takes_also(CLOUD_EVENTS, list(shape("CloudEvent")))
            .gives(202, "BatchAccepted").with(&["traceparent"]).fails(&["invalid"])
            .more("Each for itself, in one write. If the store takes one of them not, the whole is to be sent again"),
        op(GET, "/api/v1/bridge/events/{id}").gives(200, "Event"),
    ]
}

#[rustfmt::skip]
fn deliveries() -> Vec<Operation> {
    const FILTER: &[&str] = &["service", "rule", "event", "state", "reason"];
    vec![
        op(GET, "/api/v1/bridge/deliveries").gives(200, "DeliveryPage").with(FILTER).with(PAGE).fails(&["invalid"]),
        op(GET, "/api/v1/bridge/deliveries/{id}").gives(200, "DeliveryWithAttempts"),
        op(GET, "/api/v1/ops/overview").gives(200, "Overview").in_memory()
            .more("Of what the key may see. What is in the store is looked up every five seconds at most"),
        op(GET, "/api/v1/ops/services").gives(200, "StandingPage").with(&["service", "search", "circuit", "sort"]).with(PAGE).fails(&["invalid"]).in_memory(),
        op(GET, "/api/v1/ops/history").gives(200, "History").with(&["service", "minutes"]).fails(&["invalid", "notFound"]).in_memory()
            .more("Of one service, or of all together. It is kept in memory, and begins anew when the hub starts"),
        op(GET, "/api/v1/ops/audit").gives(200, "AuditPage").with(PAGE).fails(&["invalid"]),
        op(POST, "/api/v1/ops/secrets:rotate").gives(200, "SecretsRotated").fails(&["conflict"]),
    ]
}

#[rustfmt::skip]
fn alerts() -> Vec<Operation> {
    const ONE: &str = "/api/v1/ops/alerts/{id}";
    const RULE: &str = "/api/v1/ops/alertRules/{name}";
    const CHANNEL: &str = "/api/v1/ops/alertChannels/{name}";
    vec![
        op(GET, "/api/v1/ops/alerts").gives(200, "AlertPage").with(&["incidentState", "severity", "service", "alertRule"]).with(PAGE).fails(&["invalid"])
            .more("A key that is for some services sees theirs, and nothing about the hub itself"),
        op(GET, ONE).gives(200, "Alert"),
        op(POST, "/api/v1/ops/alerts/{id}:acknowledge").may_take("Reason").gives(200, "Alert").fails(&["conflict", "invalid"]),
        op(POST, "/api/v1/ops/alerts/{id}:mute").takes("MuteInput").gives(200, "Alert").fails(&["conflict", "invalid"])
            .more("If it is open still when that is over, people are told then"),
        op(POST, "/api/v1/ops/alerts/{id}:unmute").gives(200, "Alert").fails(&["conflict"]),
        op(GET, "/api/v1/ops/alertRules").gives_this(200, list(shape("AlertRule"))).in_memory(),
        op(GET, RULE).gives(200, "AlertRule").versioned().in_memory(),
        op(PUT, RULE).takes("AlertRuleInput").gives(201, "AlertRule").gives(200, "AlertRule").versioned().with(VERSIONS).fails(CHANGE_FAILS)
            .more("What is not said is as it comes with the hub. Incidents of a rule that is disabled are resolved"),
        op(PATCH, RULE).takes("AlertRuleChange").gives(200, "AlertRule").versioned().with(VERSIONS).fails(CHANGE_FAILS),
        op(DELETE, RULE).gives(200, "AlertRuleDeleted").with(VERSIONS).fails(&["badVersion", "stale"]),
        op(POST, "/api/v1/ops/alertRules/{name}:mute").takes("MuteInput").gives(200, "AlertRule").versioned().fails(&["stale", "invalid"]),
        op(POST, "/api/v1/ops/alertRules/{name}:unmute").gives(200, "AlertRule").versioned().fails(&["stale", "invalid"]),
        op(GET, "/api/v1/ops/alertChannels").gives_this(200, list(shape("AlertChannel"))).in_memory(),
        op(GET, CHANNEL).gives(200, "AlertChannel").versioned().in_memory(),
        op(PUT, CHANNEL).takes("AlertChannelInput").gives(201, "AlertChannel").gives(200, "AlertChannel").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal", "conflict"])
            .more("A secret that is not named stays as it is; null takes it away. What waits for the channel is tried at once"),
        op(PATCH, CHANNEL).takes("AlertChannelChange").gives(200, "AlertChannel").versioned().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal", "conflict"]),
        op(DELETE, CHANNEL).gives(200, "Deleted").with(VERSIONS).fails(&["badVersion", "stale", "conflict"])
            .more("Not while a rule names it"),
        op(POST, "/api/v1/ops/alertChannels/{name}:test").gives(200, "AlertChannelTested").in_memory()
            .more("The message says that nothing has happened"),
    ]
}

/// The metrics.
#[rustfmt::skip]
fn metrics() -> Vec<Operation> {
    vec![
        op(GET, "/actuator/metrics").gives_plain(JSON, shape("MetricNames")).in_memory()
            .more("As Spring's actuator has it, without the envelope. No key is needed if the hub was started with `--metrics open`; one that is limited to some services is refused"),
        op(GET, "/actuator/metrics/{name}").gives_plain(JSON, shape("Metric")).in_memory().with(&["tag"]).fails(&["invalid"])
            .more("As Spring's actuator has it, without the envelope. No key is needed if the hub was started with `--metrics open`; one that is limited to some services is refused"),
        op(GET, "/metrics").gives_plain("text/plain; version=0.0.4; charset=utf-8", text()).in_memory()
            .more("No key is needed if the hub was started with `--metrics open`; one that is limited to some services is refused"),
    ]
}

/// Those that need no key.
#[rustfmt::skip]
fn open() -> Vec<Operation> {
    vec![
        op(GET, "/actuator/health").gives(200, "Health").in_memory(),
        op(GET, "/actuator/health/liveness").gives(200, "Up").fails(&["stuck"]).in_memory(),
        op(GET, "/actuator/health/readiness").gives(200, "Up").fails(&["notReady", "damaged"]).in_memory(),
        op(GET, "/openapi.json").gives_plain(JSON, shape("OpenApi")).in_memory(),
        op(GET, "/docs").gives_plain("text/html; charset=utf-8", text()).in_memory(),
        op(POST, "/in/{source}").takes_also("*/*", any()).gives(202, "Accepted").fails(&["unverified", "tooLarge", "invalid"])
            .more("It proves by itself where it comes from, as its source says: no key. The same webhook again is answered like the first, and is no second event"),
    ]
}
