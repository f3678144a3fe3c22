//! What is written down about guards, as an operator reads it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use seawall::breaker::Outcome;
use seawall::failover::Failover;
use seawall::fallback::LastGood;
use seawall::fault::Grpc;
use seawall::telemetry::{Log, Measure, NAMES, describe};
use seawall::{
    Backoff, Breaker, Budget, Bulkhead, Fault, Guard, GuardBuilder, RateLimit, Registry, Retry, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};
use tracing::span;

use crate::paper::Paper;

/// Runs `work` with everything of at least this level written to a paper.
fn logged(level: tracing::Level, work: impl FnOnce(&Paper)) {
    let paper = Paper::default();
    let writer = paper.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || work(&paper));
}

fn guard(hands: &ManualClock, build: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    let retry = Retry::max_attempts(2).backoff(Backoff::constant(millis(10)).no_jitter());
    build(Guard::builder("payments").clock(hands.clock()).seed(1).retry(retry).log(Log::default()))
        .build()
        .unwrap()
}

fn call(hands: &ManualClock, guard: &Guard, steps: &[Step]) {
    let script = Script::new(hands, steps.iter().copied());
    let request = guard.idempotent().operation("charge").about("A-7");
    let _ = run(hands, request.call(|attempt| script.attempt(attempt)));
}

/// OBS-1: `[Module][Operation] Status. key=value …`, with the business key and the duration.
#[test]
fn obs_1_calls_are_logged_in_one_format() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.breaker(Breaker::consecutive_failures(2).cooldown(secs(30))));
    logged(tracing::Level::INFO, |paper| {
        call(
            &hands,
            &guard,
            &[Step::FailAfter(millis(120), Fault::of_http(500).unwrap()), Step::OkAfter(millis(40))],
        );
        assert_eq!(
            paper.read(),
            [
                "INFO seawall: [payments][charge] Start. key=\"A-7\"",
                "WARN seawall: [payments][charge] Retry triggered. key=\"A-7\" attempt=2 wait=10ms cause=protocol fault (http 500)",
                "INFO seawall: [payments][charge] Success. key=\"A-7\" attempts=2 duration=170ms",
            ]
        );
        call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Fail(Fault::io())]);
        assert_eq!(
            paper.read()[2..],
            [
                "ERROR seawall: [payments][circuit] Open! cooldown=\"30000ms\"",
                "WARN seawall: [payments][charge] Failed! key=\"A-7\" attempts=2 duration=10ms policy=retry cause=i/o fault",
            ]
        );
        call(&hands, &guard, &[]);
        assert_eq!(
            paper.read()[1],
            "WARN seawall: [payments][charge] Failed! key=\"A-7\" attempts=0 duration=0ms policy=breaker \
             cause=rejected, nothing was sent, come back in 30s"
        );
        guard.breaker().unwrap().reset("it is back");
        assert_eq!(paper.read(), ["INFO seawall: [payments][circuit] Closed."]);
    });
}

/// OBS-1: an expected business fault is a warning; our own bad request, a panic and the unexpected need a person.
#[test]
fn obs_1_the_level_says_whether_a_person_is_needed() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    logged(tracing::Level::WARN, |paper| {
        let mut level = |step: Step| {
            call(&hands, &guard, &[step]);
            paper.read().pop().unwrap().split(' ').next().unwrap().to_owned()
        };
        let http = |status| Step::Fail(Fault::of_http(status).unwrap());
        assert_eq!([http(404), http(409), http(422)].map(&mut level), ["WARN", "WARN", "WARN"]);
        assert_eq!([http(400), http(401), http(403)].map(&mut level), ["ERROR", "ERROR", "ERROR"]);
        assert_eq!(level(Step::Fail(Fault::system())), "ERROR");
        let unwound =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&hands, &guard, &[Step::Panic])));
        assert!(unwound.is_err());
        let lines = paper.read();
        assert_eq!(lines[0], "ERROR seawall: [payments][charge] Failed! key=\"A-7\" cause=\"panic\"");
        assert_eq!(lines.len(), 1, "and nobody abandoned it: {lines:?}");
        let answer = run(&hands, guard.call(async |_| Err::<u32, _>(Fault::io())));
        assert!(answer.is_err());
        assert!(
            paper.read()[0].contains("[payments][call] Failed! attempts=1"),
            "a call without labels has none"
        );
        let answer = run(
            &hands,
            guard.idempotent().about("A-8").or_value(1).call(async |_| Err::<u32, _>(Fault::io())),
        );
        assert!(answer.unwrap().is_fallback());
        assert_eq!(
            paper.read().pop().unwrap(),
            "WARN seawall: [payments][call] Fallback activated. key=\"A-8\" triggerCause=i/o fault action=\"ServeDefault\" fallback=\"value\""
        );
    });
}

/// OBS-1: a line about a fallback says what is done instead: what is served, or that it is kept to be tried again.
#[test]
fn obs_1_a_fallback_names_its_action() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    let last = LastGood::new();
    last.set(1);
    logged(tracing::Level::WARN, |paper| {
        let read = || {
            let line = paper.read().pop().unwrap();
            assert!(line.contains("Fallback activated."), "{line}");
            line.split_once("triggerCause=i/o fault ").unwrap().1.to_owned()
        };
        let fails = async |_| Err::<u32, _>(Fault::io());
        run(&hands, guard.idempotent().or_else(|_| 1).call(fails)).unwrap();
        assert_eq!(read(), "action=\"ServeDefault\" fallback=\"function\"");
        run(&hands, guard.idempotent().or_last_good(&last).call(fails)).unwrap();
        assert_eq!(read(), "action=\"ServeLastGood\" fallback=\"last_good\"");
        let other = |_: &_| async { Ok::<_, Fault>(1) };
        run(&hands, guard.idempotent().or_ask(other).call(fails)).unwrap();
        assert_eq!(read(), "action=\"AskOther\" fallback=\"other\"");
        let queued = guard.idempotent().or_value(1).dead_letter(|_: &seawall::Error<Fault>| {});
        run(&hands, queued.call(fails)).unwrap();
        assert_eq!(read(), "action=\"QueueForRetry\" fallback=\"value\"");
        let once = guard.operation("charge").or_value(1).dead_letter(|_: &seawall::Error<Fault>| {});
        run(&hands, once.call(fails)).unwrap();
        assert_eq!(read(), "action=\"ServeDefault\" fallback=\"value\"", "what was not given up is not kept");
    });
}

/// OBS-1: what needs a person in gRPC's words, as in those of HTTP.
#[test]
fn obs_1_the_level_is_the_same_for_grpc() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    logged(tracing::Level::WARN, |paper| {
        let mut level = |code| {
            call(&hands, &guard, &[Step::Fail(Fault::of_grpc(code))]);
            paper.read().pop().unwrap().split(' ').next().unwrap().to_owned()
        };
        let ours =
            [Grpc::InvalidArgument, Grpc::PermissionDenied, Grpc::Unauthenticated, Grpc::Unimplemented];
        assert_eq!(ours.map(&mut level), ["ERROR"; 4]);
        assert_eq!([Grpc::DataLoss, Grpc::Internal].map(&mut level), ["ERROR"; 2]);
        assert_eq!(
            [Grpc::NotFound, Grpc::AlreadyExists, Grpc::FailedPrecondition].map(&mut level),
            ["WARN"; 3]
        );
    });
}

/// OBS-1: however many calls are refused or abandoned in a second, the one that needs a person is written.
#[test]
fn obs_1_a_storm_of_warnings_hides_no_error() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.no_retry().log(Log::default().lines_per_second(3)));
    let is_error = |line: &String| line.starts_with("ERROR");
    logged(tracing::Level::WARN, |paper| {
        for _ in 0..10 {
            call(&hands, &guard, &[Step::Fail(Fault::io())]);
            let hanging = Script::new(&hands, [Step::Hang]);
            let mut abandoned = std::pin::pin!(guard.call(|attempt| hanging.attempt(attempt)));
            assert!(poll_once(abandoned.as_mut()).is_pending());
        }
        assert_eq!(paper.read().len(), 6);
        for _ in 0..10 {
            call(&hands, &guard, &[Step::Fail(Fault::of_http(401).unwrap())]);
        }
        assert_eq!(paper.read().iter().filter(|line| is_error(line)).count(), 3);
        let panics = || call(&hands, &guard, &[Step::Panic]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(paper.read().iter().filter(|line| is_error(line)).count(), 1);
    });
}

/// OBS-1: a line is a line, whatever somebody outside has put into a key or an operation.
#[test]
fn obs_1_nobody_writes_lines_of_his_own() {
    let hands = ManualClock::new();
    let registry = Registry::builder().clock(hands.clock()).log(Log::default()).build();
    let hosts = registry.register_keyed(Guard::builder("hosts").breaker(Breaker::default()), 10).unwrap();
    let guard = hosts.guard("a\n ERROR seawall: [payments][circuit] Open!");
    logged(tracing::Level::INFO, |paper| {
        let request = guard.idempotent().operation("get\r\n INFO all is well").about("7\n8");
        run(&hands, request.call(async |_| Ok::<_, Fault>(()))).unwrap();
        guard.breaker().unwrap().force_open("maintenance");
        let lines = paper.read();
        assert_eq!(lines.len(), 3, "{lines:?}");
        let name = r"[hosts[a\n ERROR seawall: [payments][circuit] Open!]]";
        assert!(lines[0].contains(name) && lines[2].contains(name), "{lines:?}");
    });
}

/// OBS-1: the same fields in JSON.
#[test]
fn obs_1_the_same_fields_in_json() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    let paper = Paper::default();
    let writer = paper.clone();
    let subscriber =
        tracing_subscriber::fmt().json().without_time().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || call(&hands, &guard, &[Step::OkAfter(millis(40))]));
    assert_eq!(
        paper.read()[1],
        r#"{"level":"INFO","fields":{"message":"[payments][charge] Success.","key":"A-7","attempts":1,"duration":"40ms"},"target":"seawall"}"#
    );
}

/// OBS-1: hot loops are sampled, and the next line says what was left out.
#[test]
fn obs_1_hot_loops_are_sampled() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.log(Log::default().lines_per_second(3)));
    logged(tracing::Level::INFO, |paper| {
        for _ in 0..50 {
            call(&hands, &guard, &[Step::Ok]);
        }
        assert_eq!(paper.read().len(), 6, "three that it began and three that it succeeded");
        hands.advance(secs(1));
        call(&hands, &guard, &[Step::Ok]);
        let expected =
            "INFO seawall: [payments][charge] Success. key=\"A-7\" attempts=1 duration=0ms suppressed=47";
        assert_eq!(paper.read()[1], expected);
    });
    logged(tracing::Level::WARN, |paper| {
        call(&hands, &guard, &[Step::Ok]);
        assert!(paper.read().is_empty());
    });
}

/// A recorder that can be read.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl Book {
    fn entry(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        self.0.lock().unwrap().entry(name).or_default().clone()
    }

    /// What is not zero.
    fn read(&self) -> Vec<String> {
        let book = self.0.lock().unwrap();
        let values = book.iter().map(|(name, value)| (name, value.load(Ordering::Relaxed)));
        values.filter(|(_, value)| *value != 0).map(|(name, value)| format!("{name} {value}")).collect()
    }

    fn names(&self) -> Vec<String> {
        let book = self.0.lock().unwrap();
        let mut names: Vec<String> =
            book.keys().map(|name| name.split('{').next().unwrap().to_owned()).collect();
        names.dedup();
        names
    }
}

/// The sum of what was recorded, in whole milliseconds.
struct Sum(Arc<AtomicU64>);

impl HistogramFn for Sum {
    fn record(&self, seconds: f64) {
        self.0.fetch_add((seconds * 1e3).round() as u64, Ordering::Relaxed);
    }
}

impl Recorder for Book {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, _: SharedString) {
        self.0.lock().unwrap().entry(format!("described {}", key.as_str())).or_default();
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_counter(key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        assert_eq!(unit, Some(Unit::Seconds));
        self.describe_counter(key, unit, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.entry(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.entry(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Sum(self.entry(key))))
    }
}

/// OBS-2: calls by outcome, attempts, faults by class, retries, rejections, timeouts, the circuit: one number each.
#[test]
fn obs_2_what_happens_is_counted() {
    let (hands, book) = (ManualClock::new(), Book::default());
    let guard = with_local_recorder(&book, || {
        // Without a log: a place in the code that writes where nobody reads is silent for other threads too.
        let retry = Retry::max_attempts(2).backoff(Backoff::constant(millis(10)).no_jitter());
        let builder = Guard::builder("payments").clock(hands.clock()).retry(retry).metrics();
        let breaker = Breaker::consecutive_failures(4).cooldown(secs(30));
        builder.attempt_timeout(secs(1)).breaker(breaker).build().unwrap()
    });
    call(
        &hands,
        &guard,
        &[Step::FailAfter(millis(100), Fault::of_http(500).unwrap()), Step::OkAfter(millis(90))],
    );
    call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Hang]);
    call(&hands, &guard, &[Step::Fail(Fault::business())]);
    {
        let hanging = Script::new(&hands, [Step::Hang]);
        let mut abandoned = std::pin::pin!(guard.call(|attempt| hanging.attempt(attempt)));
        assert!(poll_once(abandoned.as_mut()).is_pending());
    }
    guard.breaker().unwrap().force_open("maintenance");
    call(&hands, &guard, &[]);
    assert_eq!(
        book.read(),
        [
            "seawall.attempts{guard=payments} 6",
            "seawall.call.duration{guard=payments,outcome=exhausted} 1010",
            "seawall.call.duration{guard=payments,outcome=success} 200",
            "seawall.calls{guard=payments,outcome=abandoned} 1",
            "seawall.calls{guard=payments,outcome=exhausted} 1",
            "seawall.calls{guard=payments,outcome=failed} 1",
            "seawall.calls{guard=payments,outcome=rejected} 1",
            "seawall.calls{guard=payments,outcome=success} 1",
            "seawall.circuit.state{guard=payments} 4611686018427387904", // The bits of 2.0.
            "seawall.circuit.transitions{guard=payments,to=open} 1",
            "seawall.faults{guard=payments,error.type=business} 1",
            "seawall.faults{guard=payments,error.type=io} 1",
            "seawall.faults{guard=payments,error.type=protocol} 1",
            "seawall.faults{guard=payments,error.type=timeout} 1",
            "seawall.rejections{guard=payments,policy=breaker} 1",
            "seawall.retries{guard=payments} 2",
            "seawall.timeouts{guard=payments,policy=attempt_timeout} 1",
        ]
    );
}

/// OBS-2: the names are what the table says, and the table is what the page says.
#[test]
fn obs_2_names_are_documented() {
    let book = Book::default();
    with_local_recorder(&book, || {
        let registry = Registry::builder().metrics().build();
        let budget = Budget::share_of_calls(10);
        let builder = Guard::builder("all")
            .retry(Retry::max_attempts(2).budget(budget))
            .breaker(Breaker::default())
            .rate_limit(RateLimit::calls(1))
            .bulkhead(Bulkhead::max_calls(1));
        registry.register(builder).unwrap();
        registry.record_gauges();
    });
    let mut known: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
    known.sort_unstable();
    assert_eq!(book.names(), known);

    let described = Book::default();
    with_local_recorder(&described, describe);
    assert_eq!(described.names().len(), NAMES.len());

    let page = include_str!("../../docs/telemetry.md");
    for &(name, measure, labels, meaning) in NAMES {
        let labels: Vec<_> =
            std::iter::once(&"guard").chain(labels.iter()).map(|label| format!("`{label}`")).collect();
        let kind = match measure {
            Measure::Counter => "counter",
            Measure::Gauge => "gauge",
            Measure::Histogram => "histogram, seconds",
        };
        let line = format!("| `{name}` | {kind} | {} | {meaning} |", labels.join(", "));
        assert!(page.contains(&line), "docs/telemetry.md has no line\n{line}");
    }
}

/// OBS-2: a family of guards has one set of metrics, however many keys there are.
#[test]
fn obs_2_labels_of_families_are_bounded() {
    let (hands, book) = (ManualClock::new(), Book::default());
    with_local_recorder(&book, || {
        let registry = Registry::builder().clock(hands.clock()).metrics().build();
        let hosts =
            registry.register_keyed(Guard::builder("hosts").breaker(Breaker::default()), 100).unwrap();
        for n in 0..50 {
            run(&hands, hosts.guard(&format!("host {n}")).call(async |_| Ok::<_, Fault>(()))).unwrap();
        }
        registry.record_gauges();
    });
    assert_eq!(
        book.read(),
        ["seawall.attempts{guard=hosts} 50", "seawall.calls{guard=hosts,outcome=success} 50"]
    );
}

/// ENG-14: who answered, a warning on the switch, an error when both fail.
#[test]
fn eng_14_a_failover_logs_who_answered() {
    let hands = ManualClock::new();
    let side =
        |name: &str| Guard::builder(name).clock(hands.clock()).no_retry().breaker(Breaker::default()).build();
    let orders =
        Failover::new(side("one").unwrap(), side("two").unwrap()).unwrap().log("DataSource", &Log::default());
    let query = |primary: Step, secondary: Step| {
        let scripts = [primary, secondary].map(|step| Script::new(&hands, [step]));
        let _ = run(
            &hands,
            orders
                .idempotent()
                .call(|attempt: seawall::Attempt| scripts[attempt.side().index()].attempt(attempt)),
        );
    };
    logged(tracing::Level::INFO, |paper| {
        query(Step::OkAfter(millis(12)), Step::Ok);
        query(Step::FailAfter(millis(30), Fault::io()), Step::OkAfter(millis(12)));
        query(
            Step::Fail(Fault::io()),
            Step::FailAfter(millis(20), Fault::system().code(seawall::fault::Code::Http(500))),
        );
        assert_eq!(
            paper.read(),
            [
                "INFO seawall: [DataSource][primary] Query success. duration=12ms",
                "WARN seawall: [DataSource][primary] Query failed! Asking the secondary. duration=30ms cause=one: failed after 1 attempt: i/o fault",
                "INFO seawall: [DataSource][secondary] Query success. duration=42ms",
                "WARN seawall: [DataSource][primary] Query failed! Asking the secondary. duration=0ms cause=one: failed after 1 attempt: i/o fault",
                "ERROR seawall: [DataSource][both] Query failed! duration=20ms \
                 cause=one: failed after 1 attempt: i/o fault; two: failed after 1 attempt: unexpected fault (http 500)",
            ]
        );
    });
}

/// Asks something whenever there is a line.
struct Asks<F>(F);

impl<F: Fn() + Send + Sync + 'static> tracing::Subscriber for Asks<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        (self.0)();
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Works with a log whose every line asks; false if that never comes to an end.
fn ends(ask: impl Fn() + Send + Sync + 'static, work: impl FnOnce() + Send + 'static) -> bool {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        tracing::subscriber::with_default(Asks(ask), work);
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(secs(5)).is_ok()
}

/// ENG-13, OBS-1: nobody is told anything while a lock is held that he may want.
#[test]
fn eng_13_whoever_hears_that_a_circuit_was_moved_may_ask_why() {
    let guard = Guard::builder("peer").log(Log::default()).breaker(Breaker::default()).build().unwrap();
    let (asked, heard) = (guard.clone(), Arc::new(Mutex::new(Vec::new())));
    let told = heard.clone();
    let ask = move || told.lock().unwrap().push(asked.breaker().unwrap().reason().unwrap().to_string());
    assert!(ends(ask, move || guard.breaker().unwrap().force_open("maintenance")), "it hangs");
    assert_eq!(*heard.lock().unwrap(), ["maintenance"]);
}

/// ENG-13, OBS-1: a line about a guard of a family is written while the family can be looked at.
#[test]
fn eng_13_whoever_hears_of_a_family_may_look_at_it() {
    let hands = ManualClock::new();
    let registry = Registry::builder().log(Log::default()).clock(hands.clock()).build();
    let breaker = Breaker::consecutive_failures(1).cooldown(secs(1)).automatic_half_open();
    let hosts = registry.register_keyed(Guard::builder("hosts").breaker(breaker.clone()), 1).unwrap();
    hosts.guard("down").breaker().unwrap().admit().unwrap().finish(Outcome::Failure);
    hands.advance(secs(2));
    let family = hosts.clone();
    // The search for a place looks at the circuit, which is half-open by now.
    assert!(ends(move || drop(registry.troubled()), move || drop(hosts.guard("other"))), "it hangs");
    let (asked, changed) = (family.clone(), Guard::builder("hosts").breaker(breaker.cooldown(secs(9))));
    assert!(
        ends(move || drop(asked.guards()), move || assert!(family.reconfigure(changed, 1).unwrap())),
        "it hangs"
    );
}

/// OBS-1: a family of guards is sampled as one, however many keys there are.
#[test]
fn obs_1_a_family_writes_as_much_as_one_guard() {
    let hands = ManualClock::new();
    let registry = Registry::builder().clock(hands.clock()).log(Log::default().lines_per_second(3)).build();
    let hosts = registry.register_keyed(Guard::builder("hosts"), 100).unwrap();
    logged(tracing::Level::INFO, |paper| {
        for n in 0..50 {
            call(&hands, &hosts.guard(&n.to_string()), &[Step::Ok]);
        }
        assert_eq!(paper.read().len(), 6, "three that it began and three that it succeeded");
    });
}
