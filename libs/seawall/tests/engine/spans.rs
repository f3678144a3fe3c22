//! A span for each attempt, with a real subscriber.

use std::fmt;
use std::sync::{Arc, Mutex};

use seawall::{Backoff, Breaker, Fault, Guard, GuardBuilder, Registry, Retry, millis, secs};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Instrument, Subscriber, info, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Writes down what becomes of spans, and in which span an event is.
#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<String>>>);

impl Scribe {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Scribe {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = context.span(id).unwrap();
        let parent = span.parent().map_or("nothing", |parent| parent.name());
        self.write(format!("{} below {parent}{}", span.name(), fields.0));
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.write(format!("ended{}", fields.0)); // One field at a time.
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let within = context.event_span(event).map_or("nothing", |span| span.name());
        self.write(format!("event in {within}{}", fields.0));
    }
}

fn watched(work: impl FnOnce(&Scribe)) {
    let scribe = Scribe::default();
    let subscriber = tracing_subscriber::registry().with(scribe.clone());
    tracing::subscriber::with_default(subscriber, || work(&scribe));
}

fn builder(hands: &ManualClock) -> GuardBuilder {
    let retry = Retry::max_attempts(2).backoff(Backoff::constant(millis(10)).no_jitter());
    Guard::builder("payments").clock(hands.clock()).retry(retry).attempt_timeout(secs(1))
}

/// OBS-3: each attempt has a span below that of its caller, and what the operation logs stands in it.
#[test]
fn obs_3_each_attempt_has_a_span_below_the_callers() {
    let hands = ManualClock::new();
    let guard = builder(&hands).attempt_spans().build().unwrap();
    watched(|scribe| {
        let script = Script::new(&hands, [Step::FailAfter(millis(5), Fault::io()), Step::OkAfter(millis(5))]);
        let call = guard.idempotent().operation("charge").about("A-7").call(async |attempt| {
            info!("before");
            let result = script.attempt(attempt).await;
            info!("after");
            result
        });
        run(&hands, call.instrument(info_span!("request"))).unwrap();
        let attempt = "seawall.attempt below request guard=\"payments\" operation=\"charge\" key=\"A-7\"";
        assert_eq!(
            scribe.read(),
            [
                "request below nothing",
                &format!("{attempt} attempt=1"),
                "event in seawall.attempt message=before",
                "event in seawall.attempt message=after",
                "ended outcome=\"failed\"",
                "ended cause=i/o fault",
                &format!("{attempt} attempt=2"),
                "event in seawall.attempt message=before",
                "event in seawall.attempt message=after",
                "ended outcome=\"success\"",
            ]
        );
        info!("outside");
        assert_eq!(scribe.read(), ["event in nothing message=outside"]);
    });
}

/// Says that it is dropped.
struct Says;

impl Drop for Says {
    fn drop(&mut self) {
        info!("dropped");
    }
}

/// OBS-3: an attempt that is cut short, abandoned or panics says so in its span.
#[test]
fn obs_3_the_span_of_an_attempt_says_how_it_ended() {
    let hands = ManualClock::new();
    let guard = builder(&hands).no_retry().attempt_spans().build().unwrap();
    watched(|scribe| {
        let hanging = Script::new(&hands, [Step::Hang, Step::Hang]);
        let hang = async |attempt| {
            let _says = Says;
            hanging.attempt(attempt).await
        };
        assert!(run(&hands, guard.call(hang)).is_err());
        let begun = "seawall.attempt below nothing guard=\"payments\" attempt=1";
        assert_eq!(
            scribe.read(),
            [begun, "event in seawall.attempt message=dropped", "ended outcome=\"timed_out\""]
        );
        let mut abandoned = Box::pin(guard.call(hang));
        assert!(poll_once(abandoned.as_mut()).is_pending());
        drop(abandoned);
        assert_eq!(scribe.read()[..2], [begun, "ended outcome=\"abandoned\""]);
        let panics = || run(&hands, guard.call(async |_| -> Result<(), Fault> { panic!("by itself") }));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(scribe.read(), [begun, "ended outcome=\"panicked\""]);
        guard
            .run(|_| {
                info!("blocks");
                Ok::<_, Fault>(())
            })
            .unwrap();
        assert_eq!(
            scribe.read(),
            [begun, "event in seawall.attempt message=blocks", "ended outcome=\"success\""]
        );
    });
}

/// OBS-3: no span unless somebody asked for it, for a guard or for a registry; none for what was refused.
#[test]
fn obs_3_spans_are_there_for_those_who_ask() {
    let hands = ManualClock::new();
    let plain = builder(&hands).build().unwrap();
    let registry = Registry::builder().attempt_spans().build();
    let registered = registry.register(builder(&hands).breaker(Breaker::default())).unwrap();
    watched(|scribe| {
        run(&hands, plain.call(async |_| Ok::<_, Fault>(()))).unwrap();
        assert_eq!(scribe.read(), Vec::<String>::new());
        run(&hands, registered.call(async |_| Ok::<_, Fault>(()))).unwrap();
        assert_eq!(scribe.read().len(), 2);
        registered.breaker().unwrap().force_open("maintenance");
        assert!(run(&hands, registered.call(async |_| Ok::<_, Fault>(()))).is_err());
        assert_eq!(scribe.read(), Vec::<String>::new());
    });
}

/// OBS-3, ENG-16: a call with spans is `Send` and may move between threads at every await.
#[test]
fn obs_3_a_call_with_spans_moves_between_threads() {
    let scribe = Scribe::default();
    let subscriber = tracing::Dispatch::new(tracing_subscriber::registry().with(scribe.clone()));
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
    let guard = Guard::builder("payments").attempt_spans().build().unwrap();
    threads.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20_u32 {
            let guard = guard.clone();
            let work = async move {
                let operation = async |_| {
                    for _ in 0..20 {
                        tokio::task::yield_now().await;
                        info!(number);
                    }
                    Ok::<_, Fault>(())
                };
                guard.call(operation).instrument(info_span!("request")).await.unwrap();
            };
            tasks.spawn(tracing::instrument::WithSubscriber::with_subscriber(work, subscriber.clone()));
        }
        tasks.join_all().await;
    });
    let lines = scribe.read();
    let of = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(of("seawall.attempt below request"), 20);
    assert_eq!(of("event in seawall.attempt number="), 400);
    assert_eq!(of("ended outcome=\"success\""), 20);
}
