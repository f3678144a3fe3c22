//! Spans on their way to a collector: OTLP over HTTP, as JSON.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, counter};
use seawall::telemetry::Sampler;
use seawall::{Clock, Guard, Retry, Safety, secs};
use seawall_http::{Egress, HttpClient, Request};
use seawall_hub_core::metric_names;
use serde_json::{Value as Json, json};
use tracing::warn;

use super::{AttributeValue, Span, SpanQueue, Spans};

/// The maximum number of spans in a request.
const TOGETHER: usize = 512;
/// The first one waits so long for others.
const GATHER: Duration = Duration::from_millis(500);
/// At the end of the process, what is left has so long. A collector that hangs does not make it a bad end.
const LAST: Duration = Duration::from_millis(1_500);

/// Sends spans to a collector.
pub(crate) struct Exporter {
    queue: Arc<SpanQueue>,
    client: HttpClient,
    guard: Guard,
    url: String,
    sent: Counter,
    lines: Sampler,
    clock: Clock,
    /// One batch after the other, also when the end of the process wants to send what is left.
    sending: tokio::sync::Mutex<()>,
}

impl Exporter {
    /// To this collector: `http://collector:4318`. Its address was said by whoever starts the hub, so it may be private; nothing
    /// else goes through this client.
    pub(crate) fn new(endpoint: &str, clock: &Clock) -> Result<(Spans, Self), String> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        Request::post(&url).map_err(|error| format!("`{endpoint}` is no address of a collector: {error}"))?;
        let client = HttpClient::builder().egress(Egress::unrestricted()).build();
        let guard = Guard::builder("otlp").call_timeout(secs(10)).retry(Retry::max_attempts(3)).build();
        let queue = Arc::new(SpanQueue::new(clock.clone()));
        let exporter = Exporter {
            queue: queue.clone(),
            client: client.map_err(|error| error.to_string())?,
            guard: guard.map_err(|error| error.to_string())?,
            url,
            sent: counter!(metric_names::SPANS, "outcome" => "sent"),
            lines: Sampler::new(1),
            clock: clock.clone(),
            sending: tokio::sync::Mutex::default(),
        };
        Ok((Spans { queue: Some(queue) }, exporter))
    }

    /// Sends what comes, again and again.
    pub(crate) async fn run(&self) {
        loop {
            self.queue.bell.notified().await;
            tokio::time::sleep(GATHER).await;
            self.flush().await;
        }
    }

    /// Sends all that waits.
    pub(crate) async fn flush(&self) {
        let _one_after_the_other = self.sending.lock().await;
        loop {
            let spans = self.queue.take(TOGETHER);
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            match self.send(&spans).await {
                Ok(()) => self.sent.increment(count),
                Err(cause) => {
                    self.queue.dropped.increment(count);
                    if let Some(suppressed) = self.lines.pass(self.clock.now()) {
                        warn!(target: "seawall", spans = count, cause, suppressed, "[Traces][Export] Failed!");
                    }
                }
            }
        }
    }

    /// Sends what is left at the end of the process, as far as the collector takes it.
    pub(crate) async fn flush_last(&self) {
        if tokio::time::timeout(LAST, self.flush()).await.is_err() {
            let left = self.queue.take(usize::MAX).len();
            self.queue.dropped.increment(left as u64);
            let cause = "the collector does not answer, and the process ends";
            warn!(target: "seawall", spans = left, cause, "[Traces][Export] Failed!");
        }
    }

    async fn send(&self, spans: &[Span]) -> Result<(), String> {
        let request = Request::post(&self.url)
            .and_then(|request| request.header("content-type", "application/json"))
            .map_err(|error| error.to_string())?
            // A collector that gets spans twice knows them by their names.
            .safety(Safety::Idempotent)
            .body(body(spans).to_string().into_bytes());
        let answer = self.client.send(&self.guard, request).await.map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("the collector said {}", answer.status()))
        }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

pub(super) fn body(spans: &[Span]) -> Json {
    let resource = [("service.name", "seawall"), ("service.version", env!("CARGO_PKG_VERSION"))]
        .map(|(name, value)| attribute(name, &AttributeValue::Text(value.to_owned())));
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "seawall.hub"}, "spans": spans}],
    }]})
}

fn span(span: &Span) -> Json {
    let (trace, id) = (span.trace.to_string(), |id: u64| format!("{id:016x}"));
    let attributes: Vec<Json> = span.attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let links: Vec<Json> =
        span.link.iter().map(|link| json!({"traceId": trace, "spanId": id(*link)})).collect();
    let status = match &span.error {
        Some(error) => json!({"code": 2, "message": error}),
        None => json!({}),
    };
    json!({
        "traceId": trace, "spanId": id(span.id), "parentSpanId": span.parent.map(id).unwrap_or_default(),
        "name": span.name, "kind": span.kind as u8,
        "startTimeUnixNano": span.began.to_string(), "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes, "links": links, "status": status,
    })
}

fn attribute(name: &str, value: &AttributeValue) -> Json {
    match value {
        AttributeValue::Text(text) => json!({"key": name, "value": {"stringValue": text}}),
        AttributeValue::Texts(texts) => {
            let texts: Vec<Json> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"key": name, "value": {"arrayValue": {"values": texts}}})
        }
        // Whole numbers of 64 bits are texts in this form.
        AttributeValue::Number(number) => json!({"key": name, "value": {"intValue": number.to_string()}}),
    }
}
