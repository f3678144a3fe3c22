//! A guard as a layer of tower services.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use seawall::tower::{GuardLayer, GuardService, Replay};
use seawall::{
    Backoff, Breaker, Bulkhead, Fault, Guard, GuardBuilder, Kind, Policy, Retry, Safety, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Scripted, Step, poll_once, run};
use tower_layer::Layer;
use tower_service::Service;

/// A client that follows a script, and counts how often it was asked to be ready.
#[derive(Clone)]
struct Client {
    script: Arc<std::sync::Mutex<Vec<Step>>>,
    hands: ManualClock,
    readied: Arc<AtomicU32>,
    bodies: Arc<std::sync::Mutex<Vec<String>>>,
    under_way: Arc<AtomicUsize>,
}

struct Request {
    body: Option<String>,
    safety: Safety,
}

impl Replay for Request {
    fn try_clone(&self) -> Option<Self> {
        Some(Request { body: Some(self.body.clone()?), safety: self.safety })
    }

    fn safety(&self) -> Safety {
        self.safety
    }
}

impl Service<Request> for Client {
    type Response = ();
    type Error = Fault;
    type Future = Scripted;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.readied.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Scripted {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.bodies.lock().unwrap().push(request.body.unwrap_or_default());
        let mut steps = self.script.lock().unwrap();
        let step = if steps.is_empty() { Step::Ok } else { steps.remove(0) };
        Script::new(&self.hands, [step]).attempt_alone()
    }
}

fn client(hands: &ManualClock, steps: &[Step]) -> Client {
    Client {
        script: Arc::new(std::sync::Mutex::new(steps.to_vec())),
        hands: hands.clone(),
        readied: Arc::default(),
        bodies: Arc::default(),
        under_way: Arc::default(),
    }
}

fn guarded(
    hands: &ManualClock,
    client: &Client,
    builder: impl Fn(GuardBuilder) -> GuardBuilder,
) -> (Guard, GuardService<Client>) {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter());
    let guard = builder(Guard::builder("tower").clock(hands.clock()).seed(1).retry(retry)).build().unwrap();
    (guard.clone(), GuardLayer::new(guard).layer(client.clone()))
}

fn request(body: Option<&str>, safety: Safety) -> Request {
    Request { body: body.map(str::to_owned), safety }
}

/// ENG-11: requests are sent again with the same bytes; what can't be copied is sent once.
#[test]
fn eng_11_a_request_is_replayed_byte_for_byte() {
    let hands = ManualClock::new();
    let client = client(&hands, &[Step::Fail(Fault::io()), Step::Fail(Fault::timeout())]);
    let (_, mut service) = guarded(&hands, &client, |b| b);
    run(&hands, service.call(request(Some("order 7"), Safety::Idempotent))).unwrap();
    assert_eq!(*client.bodies.lock().unwrap(), ["order 7"; 3]);
    assert_eq!(client.readied.load(Ordering::Relaxed), 3, "each attempt waits for readiness");

    let client = self::client(&hands, &[Step::Fail(Fault::io())]);
    let (_, mut service) = guarded(&hands, &client, |b| b);
    let error = run(&hands, service.call(request(None, Safety::Idempotent))).unwrap_err();
    assert_eq!(
        (error.kind(), error.attempts()),
        (Kind::Failed, 1),
        "a stream that was read is not sent empty"
    );
    let client = self::client(&hands, &[Step::Fail(Fault::io())]);
    let (_, mut service) = guarded(&hands, &client, |b| b);
    assert!(run(&hands, service.call(request(Some("pay"), Safety::Once))).is_err());
    assert_eq!(client.bodies.lock().unwrap().len(), 1);
}

/// ENG-6, ENG-11. Traps "admission in poll_ready while call never comes" and "readiness does not transfer to clones": a service
/// that was made ready and dropped holds nothing, and clones never exceed the limit.
#[test]
fn eng_11_readiness_holds_no_permit() {
    let hands = ManualClock::new();
    let client = client(&hands, &[Step::Hang, Step::Hang, Step::Hang]);
    let (guard, mut service) = guarded(&hands, &client, |b| {
        b.no_retry().bulkhead(Bulkhead::max_calls(2)).breaker(Breaker::consecutive_failures(1))
    });
    let mut cx = Context::from_waker(std::task::Waker::noop());
    for _ in 0..100 {
        let mut clone = service.clone();
        assert!(clone.poll_ready(&mut cx).is_ready());
    }
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
    let mut calls: Vec<_> = (0..2).map(|_| service.clone().call(request(Some("x"), Safety::Once))).collect();
    calls.iter_mut().for_each(|call| assert!(poll_once(call.as_mut()).is_pending()));
    let error = run(&hands, service.call(request(Some("x"), Safety::Once))).unwrap_err();
    assert_eq!(error.decided_by(), Policy::Bulkhead);
    assert_eq!(client.under_way.load(Ordering::Relaxed), 2);
    drop(calls);
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
}

/// ENG-7, ENG-11: waiting for the service to be ready is part of the attempt.
#[test]
fn eng_7_a_service_that_is_never_ready_times_out() {
    #[derive(Clone)]
    struct NeverReady;
    impl Service<Request> for NeverReady {
        type Response = ();
        type Error = Fault;
        type Future = std::future::Ready<Result<(), Fault>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
            Poll::Pending
        }

        fn call(&mut self, _: Request) -> Self::Future {
            unreachable!("it is never ready")
        }
    }
    let hands = ManualClock::new();
    let guard =
        Guard::builder("tower").clock(hands.clock()).no_retry().attempt_timeout(secs(1)).build().unwrap();
    let mut service = GuardLayer::new(guard).layer(NeverReady);
    let error = run(&hands, service.call(request(Some("x"), Safety::Once))).unwrap_err();
    assert_eq!(error.decided_by(), Policy::AttemptTimeout);
}
