//! The trace id in the lines of the library, with a real subscriber.

use seawall::failover::Failover;
use seawall::task::Dispatcher;
use seawall::task::Singleflight;
use seawall::task::{Group, cache::Cache};
use seawall::telemetry::{Log, TraceIdLayer};
use seawall::{Breaker, Fault, Guard, Retry, secs};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Instrument, Subscriber, info_span};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::paper::Paper;

const ID: &str = "0af7651916cd43dd8448eb211c80319c";
const OTHER: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// This thread's log, while the guard lives: the fields of each line, and nothing of its spans.
fn logged(layer: impl Layer<Registry> + Send + Sync) -> (Paper, DefaultGuard) {
    let paper = Paper::default();
    let writer = paper.clone();
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .without_time()
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(move || writer.clone());
    (paper, set_default(tracing_subscriber::registry().with(layer).with(lines)))
}

/// The trace ids of the lines, one for each; `-` for none.
fn ids(paper: &Paper) -> Vec<String> {
    let id = |line: &String| {
        let id = line.split("\"traceId\":\"").nth(1).and_then(|rest| rest.split('"').next());
        id.unwrap_or("-").to_owned()
    };
    paper.read().iter().map(id).collect()
}

fn guard(log: Log) -> Guard {
    Guard::builder("payments").no_retry().log(log).breaker(Breaker::default()).build().unwrap()
}

fn call(guard: &Guard) {
    guard.operation("charge").run(|_| Ok::<_, Fault>(())).unwrap();
}

/// OBS-1: a line bears the trace id that the fields of the current span, or of a span around it, say.
#[test]
fn obs_1_lines_bear_the_trace_id_of_the_current_span() {
    let (paper, _log) = logged(TraceIdLayer);
    let guard = guard(Log::default());
    call(&guard);
    assert_eq!(ids(&paper), ["-", "-"]);
    info_span!("request", trace_id = ID).in_scope(|| info_span!("query").in_scope(|| call(&guard)));
    assert_eq!(ids(&paper), [ID, ID], "of a span around the current one");
    info_span!("request", traceId = %ID).in_scope(|| call(&guard));
    assert_eq!(ids(&paper), [ID, ID], "by its other name, displayed");
    let traceparent = format!("00-{OTHER}-b7ad6b7169203331-01");
    info_span!("request", traceparent).in_scope(|| call(&guard));
    assert_eq!(ids(&paper), [OTHER, OTHER], "as W3C says it");
    let late = info_span!("request", trace_id = tracing::field::Empty);
    late.record("trace_id", ID);
    late.in_scope(|| call(&guard));
    assert_eq!(ids(&paper), [ID, ID], "recorded later");
    info_span!("request", trace_id = "a\nERROR b").in_scope(|| call(&guard));
    assert_eq!(ids(&paper), ["-", "-"], "what is no id is left out");
    info_span!("request", trace_id = ID).in_scope(|| guard.breaker().unwrap().force_open("maintenance"));
    assert_eq!(ids(&paper), [ID], "of whoever moved the circuit");
}

/// What another layer keeps beside a span, as `tracing-opentelemetry` does.
struct SpanField(String);

struct Keeping;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keeping {
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        context.span(id).unwrap().extensions_mut().insert(SpanField(ID.into()));
    }
}

fn kept() -> Option<String> {
    tracing::Span::current()
        .with_subscriber(|(id, dispatch)| {
            let registry = dispatch.downcast_ref::<Registry>()?;
            let span = registry.span(id)?;
            span.extensions().get::<SpanField>().map(|SpanField(id)| id.clone())
        })
        .flatten()
}

/// OBS-1: a program that keeps its trace ids elsewhere says where; a panic there harms no call.
#[test]
fn obs_1_a_function_finds_the_trace_id() {
    let (paper, _log) = logged(Keeping);
    let payments = guard(Log::default().trace_id(kept));
    call(&payments);
    info_span!("request").in_scope(|| call(&payments));
    assert_eq!(ids(&paper), ["-", "-", ID, ID]);
    call(&guard(Log::default().trace_id(|| panic!("no context here"))));
    assert_eq!(ids(&paper), ["-", "-"]);
}

/// OBS-1: a line is of the span in which the call is polled and dropped, whichever thread does it.
#[test]
fn obs_1_an_abandoned_call_is_of_its_callers_trace() {
    let (paper, _log) = logged(TraceIdLayer);
    let hands = ManualClock::new();
    let payments = Guard::builder("payments").clock(hands.clock()).log(Log::default()).build().unwrap();
    let script = Script::new(&hands, [Step::Hang]);
    let span = info_span!("request", trace_id = ID);
    let mut abandoned = Box::pin(payments.call(|attempt| script.attempt(attempt)).instrument(span));
    assert!(poll_once(abandoned.as_mut()).is_pending());
    info_span!("another", trace_id = OTHER).in_scope(|| drop(abandoned));
    assert_eq!(ids(&paper), [ID, ID]);
}

/// OBS-1: a failover bears it too.
#[test]
fn obs_1_a_failover_bears_the_trace_id() {
    let (paper, _log) = logged(TraceIdLayer);
    let hands = ManualClock::new();
    let side = |name: &str| {
        Guard::builder(name).clock(hands.clock()).no_retry().breaker(Breaker::default()).build().unwrap()
    };
    let orders = Failover::new(side("one"), side("two")).unwrap().log("DataSource", &Log::default());
    let query = orders.idempotent().call(|_| async { Ok::<_, Fault>(()) });
    run(&hands, query.instrument(info_span!("request", trace_id = ID))).unwrap();
    assert_eq!(ids(&paper), [ID]);
}

/// OBS-1: work that callers share, and work on tasks of its own, runs in the span of whoever started it.
#[tokio::test]
async fn obs_1_work_on_other_tasks_keeps_the_span_of_its_caller() {
    let (paper, _log) = logged(TraceIdLayer);
    let payments = guard(Log::default());
    let span = || info_span!("request", trace_id = ID);
    let work = {
        let payments = payments.clone();
        move || {
            let payments = payments.clone();
            async move { payments.operation("charge").call(async |_| Ok::<_, Fault>(1_u32)).await.map(Some) }
        }
    };
    Singleflight::new().run("key", work.clone()).instrument(span()).await.unwrap();
    assert_eq!(ids(&paper), [ID, ID], "a flight");
    let cache = Cache::builder("answers").build().unwrap();
    cache.load("key", work.clone()).instrument(span()).await.unwrap();
    assert_eq!(ids(&paper), [ID, ID], "a load of a cache");
    let handler = {
        let work = work.clone();
        move |()| work()
    };
    Dispatcher::new(handler).on_tasks().run([()]).instrument(span()).await;
    assert_eq!(ids(&paper), [ID, ID], "an item of a dispatcher");
    let mut group = Group::new();
    span().in_scope(|| group.spawn("charge", work()));
    assert!(group.results().await[0].1.is_ok());
    assert_eq!(ids(&paper), [ID, ID], "a task of a group");
}

/// OBS-1: a retry is of the trace of its call.
#[tokio::test(start_paused = true)]
async fn obs_1_a_retry_after_a_wait_bears_the_trace_id() {
    let (paper, _log) = logged(TraceIdLayer);
    let payments = Guard::builder("payments")
        .retry(Retry::max_attempts(2))
        .call_timeout(secs(100))
        .log(Log::default())
        .build()
        .unwrap();
    let request = payments.idempotent().call(async |_| Err::<(), _>(Fault::io()));
    assert!(request.instrument(info_span!("request", trace_id = ID)).await.is_err());
    assert_eq!(ids(&paper), [ID, ID, ID], "start, retry, failed");
}
