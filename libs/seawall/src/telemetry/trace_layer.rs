//! The trace id that spans carry in their fields.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Subscriber, dispatcher};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Registry};

use super::trace::plain;
use super::traceparent::trace_id_of;

/// Makes the trace id that a span has in its fields known to the lines of this library.
///
/// It reads the fields `traceId` and `trace_id`, and takes the id out of a W3C `traceparent`. A line bears the id of the
/// current span or of the nearest span around it that has one.
///
/// ```
/// use seawall::telemetry::TraceIdLayer;
/// use tracing_subscriber::layer::SubscriberExt;
/// let subscriber = tracing_subscriber::registry().with(TraceIdLayer).with(tracing_subscriber::fmt::layer());
/// # drop(subscriber);
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct TraceIdLayer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceIdLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut found = Found::default();
        attributes.record(&mut found);
        found.keep(id, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut found = Found::default();
        values.record(&mut found);
        found.keep(id, &context);
    }
}

/// The trace id of the current span, kept beside it by the layer.
struct TraceId(String);

pub(super) fn current() -> Option<String> {
    dispatcher::get_default(|dispatch| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        let current = dispatch.current_span();
        let span = registry.span(current.id()?)?;
        span.scope().find_map(|span| span.extensions().get::<TraceId>().map(|TraceId(id)| id.clone()))
    })
}

/// What the fields of a span say.
#[derive(Default)]
struct Found {
    id: Option<String>,
    of_parent: Option<String>,
}

impl Found {
    fn keep<S: Subscriber + for<'a> LookupSpan<'a>>(self, id: &Id, context: &Context<'_, S>) {
        if let (Some(found), Some(span)) = (self.id.or(self.of_parent), context.span(id)) {
            span.extensions_mut().replace(TraceId(found));
        }
    }

    fn take(&mut self, field: &Field, value: &str) {
        match field.name() {
            "traceId" | "trace_id" => self.id = plain(value.to_owned()),
            "traceparent" => self.of_parent = trace_id_of(value).map(str::to_owned),
            _ => {}
        }
    }
}

impl Visit for Found {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "traceId" | "trace_id" | "traceparent") {
            self.take(field, format!("{value:?}").trim_matches('"'));
        }
    }
}
