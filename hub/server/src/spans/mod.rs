//! Traces: what an event goes through, as spans for a collector that speaks OTLP.
//!
//! One trace spans an event's arrival, the rules that look at it, every try of its deliveries, and its replay. Who sent the event
//! is the parent of its arrival, that is the parent of the rules and of the tries, and the span of a try is what the peer is told in `traceparent`. Names of spans are
//! made of names of events and deliveries, so that nothing has to be kept to find a parent, also after a restart.
//!
//! # Why not the SDK of OpenTelemetry?
//! It brings a dozen crates and its own HTTP client, which would open sockets past the egress guard. What is sent is one form of
//! JSON that is specified, in batches, from a bounded queue; what finds it full is dropped and counted. Nobody waits for it.

mod export;
mod gateway;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Counter, counter};
use seawall::Clock;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::domain::trace::TraceParent;
use seawall_hub_core::metric_names;
use seawall_hub_core::port::store::StoredDelivery;
use seawall_hub_core::port::transport::{DeliveryHeaders, PeerResponse, SendError};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{AcceptedEvent, IncomingEvent, Observation, Observer};
use seawall_hub_core::sync::Lock;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

pub(crate) use export::Exporter;
pub(crate) use gateway::GatewaySpan;

/// The maximum number of spans that wait to be exported.
const SPANS_MAX: usize = 8_192;
/// The maximum number of rules that a span names; all are counted.
const RULES_NAMED: usize = 32;

/// Where spans go. A handle: clones share everything; without a collector it does nothing.
#[derive(Clone, Default)]
pub(crate) struct Spans {
    queue: Option<Arc<SpanQueue>>,
}

/// Spans that wait to be sent.
pub(crate) struct SpanQueue {
    waiting: Lock<Vec<Span>>,
    bell: Notify,
    dropped: Counter,
    clock: Clock,
}

/// Something that took a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    trace: TraceId,
    id: u64,
    parent: Option<u64>,
    /// Another span of the same trace that it is about.
    link: Option<u64>,
    name: String,
    kind: SpanKind,
    began: u128,
    ended: u128,
    attributes: Vec<(&'static str, AttributeValue)>,
    /// What went wrong.
    error: Option<String>,
}

/// As OTLP counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Consumer = 5,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AttributeValue {
    Text(String),
    Number(i64),
    Texts(Vec<String>),
}

impl SpanQueue {
    fn new(clock: Clock) -> Self {
        SpanQueue {
            waiting: Lock::default(),
            bell: Notify::new(),
            dropped: counter!(metric_names::SPANS, "outcome" => "dropped"),
            clock,
        }
    }

    fn now(&self) -> u128 {
        nanos(self.clock.wall())
    }

    /// Never waits. A span for which there is no room is dropped and counted.
    fn put(&self, span: Span) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= SPANS_MAX {
            self.dropped.increment(1);
            return;
        }
        waiting.push(span);
        drop(waiting);
        self.bell.notify_one();
    }

    fn take(&self, most: usize) -> Vec<Span> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(most);
        waiting.drain(..count).collect()
    }
}

impl Spans {
    fn begin(&self, span: impl FnOnce() -> Option<Span>) -> Option<OpenSpan> {
        let queue = self.queue.clone()?;
        let mut span = span()?;
        span.began = queue.now();
        Some(OpenSpan { queue, span: Some(span) })
    }

    /// An event comes in.
    fn arrival(&self, incoming: &IncomingEvent) -> Option<OpenSpan> {
        self.begin(|| {
            let said = incoming.trace.as_deref()?;
            let above = TraceParent::parse(said).filter(|above| above.is_sampled())?;
            let trace = above.trace;
            let mut span = Span::new(trace, arrival(trace, &incoming.id), "accept event", SpanKind::Consumer);
            // An event that says nothing of a trace begins one, and has nobody above it.
            span.parent = Some(above.span).filter(|_| said.get(19..35) != said.get(36..52));
            span.text("messaging.message.id", &incoming.id);
            span.text("seawall.event.type", incoming.kind.as_str());
            span.text("seawall.event.source", &incoming.source);
            Some(span)
        })
    }

    /// A try begins.
    pub(crate) fn attempt(
        &self,
        service: &Service,
        request: &RenderedRequest,
        letter: DeliveryHeaders<'_>,
    ) -> Option<OpenSpan> {
        self.begin(|| {
            let trace = letter.trace.filter(|trace| trace.is_sampled())?;
            let name = format!("{} {}", request.operation, service.name);
            let mut span = Span::new(trace, attempt(letter.delivery, letter.number), name, SpanKind::Client);
            span.parent = Some(match letter.replay_of {
                Some(_) => replay(letter.delivery),
                None => arrival(trace, letter.event),
            });
            span.text("http.request.method", &request.operation);
            span.text("seawall.service", service.name.as_str());
            span.text("seawall.delivery", &letter.delivery.to_string());
            span.text("messaging.message.id", letter.event);
            if letter.number > 1 {
                span.number("http.request.resend_count", i64::from(letter.number) - 1);
            }
            Some(span)
        })
    }

    /// A dead letter is sent again, as this delivery.
    fn replay(&self, dead: DeliveryId, event: &str, trace: Option<TraceId>) -> Option<OpenSpan> {
        self.begin(|| {
            let trace = trace.filter(|trace| trace.is_sampled())?;
            let mut span = Span::new(trace, 0, "replay dead letter", SpanKind::Internal);
            (span.parent, span.link) = (Some(arrival(trace, event)), Some(attempt(dead, 1)));
            span.text("seawall.replay_of", &dead.to_string());
            span.text("messaging.message.id", event);
            Some(span)
        })
    }

    /// Whether anybody wants them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.queue.is_some()
    }
}

impl Observer for Spans {
    fn times_rules(&self) -> bool {
        self.are_wanted()
    }

    fn accepting(&self, event: &IncomingEvent) -> Option<Box<dyn Observation>> {
        self.arrival(event).map(|span| Box::new(span) as Box<dyn Observation>)
    }

    fn replaying(&self, dead: &StoredDelivery) -> Option<Box<dyn Observation>> {
        self.replay(dead.id, &dead.event, dead.trace).map(|span| Box::new(span) as Box<dyn Observation>)
    }
}

/// A span under way. One that is dropped has been given up, by a timeout or because the process ends.
pub(crate) struct OpenSpan {
    queue: Arc<SpanQueue>,
    span: Option<Span>,
}

impl OpenSpan {
    /// It has ended, well or with this error.
    pub(crate) fn end(mut self, error: Option<String>) {
        self.finish(error);
    }

    /// A try has ended.
    pub(crate) fn answered(mut self, sent: &Result<PeerResponse, SendError>) {
        let error = match sent {
            Ok(answer) => {
                if let (Some(span), Some(status)) = (&mut self.span, answer.code) {
                    span.number("http.response.status_code", i64::from(status));
                }
                answer.fault.map(|fault| fault.to_string())
            }
            Err(none) => Some(none.error.clone()),
        };
        self.finish(error);
    }

    fn finish(&mut self, error: Option<String>) {
        let Some(mut span) = self.span.take() else { return };
        (span.ended, span.error) = (self.queue.now(), error);
        self.queue.put(span);
    }
}

impl Observation for OpenSpan {
    fn accepted(mut self: Box<Self>, accepted: &AcceptedEvent) {
        if let (Some(arrival), Some(timing)) = (&self.span, &accepted.timing) {
            let mut span = Span::new(
                arrival.trace,
                rules(arrival.trace, &accepted.id),
                "match rules",
                SpanKind::Internal,
            );
            (span.parent, span.began, span.ended) =
                (Some(arrival.id), nanos(timing.began), nanos(timing.ended));
            let names = timing.rules.iter().take(RULES_NAMED).map(ToString::to_string).collect();
            span.attributes.push(("seawall.rules", AttributeValue::Texts(names)));
            span.number("seawall.rules.considered", i64::from(accepted.counts.considered));
            span.number("seawall.rules.matched", i64::try_from(timing.rules.len()).unwrap_or(i64::MAX));
            span.number("seawall.rules.filtered", i64::from(accepted.counts.filtered));
            self.queue.put(span);
        }
        self.finish(None);
    }

    fn replayed(mut self: Box<Self>, delivery: DeliveryId) {
        if let Some(span) = &mut self.span {
            span.id = replay(delivery);
            span.text("seawall.delivery", &delivery.to_string());
        }
        self.finish(None);
    }

    fn forget(mut self: Box<Self>) {
        self.span = None;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.finish(Some("abandoned before it ended".into()));
    }
}

impl Span {
    fn new(trace: TraceId, id: u64, name: impl Into<String>, kind: SpanKind) -> Self {
        let (name, attributes) = (name.into(), Vec::new());
        Span { trace, id, parent: None, link: None, name, kind, began: 0, ended: 0, attributes, error: None }
    }

    fn text(&mut self, name: &'static str, value: &str) {
        self.attributes.push((name, AttributeValue::Text(value.to_owned())));
    }

    fn number(&mut self, name: &'static str, value: i64) {
        self.attributes.push((name, AttributeValue::Number(value)));
    }
}

/// The span of a try: the same try has the same, also after a crash.
pub(crate) fn attempt(delivery: DeliveryId, number: u32) -> u64 {
    let span = delivery.database ^ delivery.number.rotate_left(20) ^ u64::from(number).rotate_left(52);
    span.max(1)
}

/// The span of a replay, above its tries, which count from 1.
fn replay(delivery: DeliveryId) -> u64 {
    attempt(delivery, 0)
}

/// The span of an event's arrival.
fn arrival(trace: TraceId, event: &str) -> u64 {
    hashed(&format!("{trace} {event}"))
}

/// The span of the rules that look at an event. An id of an event has no space in it.
fn rules(trace: TraceId, event: &str) -> u64 {
    hashed(&format!("{trace} {event} rules"))
}

fn hashed(text: &str) -> u64 {
    let hash = Sha256::digest(text);
    hash.first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes)).max(1)
}

fn nanos(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").field("wanted", &self.are_wanted()).finish()
    }
}
