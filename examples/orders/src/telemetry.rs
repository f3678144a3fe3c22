//! Log lines, spans and metrics.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use seawall::telemetry::{self, LogWriter, TraceIdLayer};
use tracing::Instrument;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

/// Log lines go to stderr, written by a thread of their own: a full pipe holds up no request. Every line of a guard has the
/// trace id of the request.
pub fn install_log(level: tracing::Level) -> anyhow::Result<LogWriter> {
    let log = LogWriter::new(std::io::stderr())?;
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log.make_writer());
    let level = LevelFilter::from_level(level);
    tracing::subscriber::set_global_default(
        tracing_subscriber::registry().with(level).with(TraceIdLayer).with(lines),
    )?;
    Ok(log)
}

/// Metrics are kept until `/metrics` is asked for them.
pub fn install_metrics() -> anyhow::Result<PrometheusHandle> {
    let metrics = PrometheusBuilder::new().install_recorder()?;
    telemetry::describe();
    Ok(metrics)
}

/// Handles a request in a span that has the caller's trace id.
pub async fn in_span(request: Request, next: Next) -> Response {
    let traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let span =
        tracing::info_span!("request", method = %request.method(), path = request.uri().path(), traceparent);
    next.run(request).instrument(span).await
}
