//! Callers with the same key share one execution.

#![expect(clippy::disallowed_methods, reason = "tests start tasks and look at paused time")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use seawall::task::SharedWorkError;
use seawall::task::Singleflight;
use seawall::{Guard, Kind, Policy, Retry, millis, secs};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

fn flights() -> Singleflight<String, u32> {
    Singleflight::new()
}

/// Work that counts how often it is started, takes `time` and yields `result`.
fn work(
    started: &Arc<AtomicUsize>,
    time: Duration,
    result: Result<u32, std::io::Error>,
) -> impl FnOnce() -> Pin<Box<dyn Future<Output = Result<u32, std::io::Error>> + Send>> + Send + 'static {
    let started = started.clone();
    move || {
        started.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            sleep(time).await;
            result
        })
    }
}

fn refused() -> std::io::Error {
    std::io::ErrorKind::ConnectionRefused.into()
}

/// TSK-1: callers with the same key share one execution; others, and those who come later, do not.
#[tokio::test(start_paused = true)]
async fn tsk_1_callers_with_the_same_key_share_one_execution() {
    let (flights, started) = (flights(), Arc::default());
    let mut callers = JoinSet::new();
    for n in 0..100 {
        let (flights, work) = (flights.clone(), work(&started, millis(10), Ok(7)));
        callers.spawn(async move { flights.run(format!("key {}", n % 4), work).await.unwrap() });
    }
    assert_eq!(callers.join_all().await, [7; 100]);
    assert_eq!((started.load(Ordering::Relaxed), flights.in_progress()), (4, 0));
    assert_eq!(flights.run("key 0".into(), work(&started, millis(10), Ok(8))).await.unwrap(), 8);
}

/// TSK-1. Trap "leader dropped → key stuck, readers hang for ever": whoever goes away, first or last or all, after whichever
/// poll, the work ends once, the others get its result and nothing is left.
#[tokio::test(start_paused = true)]
async fn tsk_1_no_caller_owns_the_work() {
    for give_up in 0..8_u32 {
        let (flights, started) = (flights(), Arc::default());
        let mut callers = JoinSet::new();
        for n in 0..3_u32 {
            let patience = if give_up & (1 << n) == 0 { secs(1) } else { millis(u64::from(n)) };
            let (flights, work) = (flights.clone(), work(&started, millis(10), Ok(7)));
            callers.spawn(async move { timeout(patience, flights.run("key".into(), work)).await });
        }
        let answered = callers.join_all().await.into_iter().filter(Result::is_ok).count();
        assert_eq!(answered, 3 - give_up.count_ones() as usize, "case {give_up:03b}");
        sleep(millis(20)).await;
        assert_eq!((started.load(Ordering::Relaxed), flights.in_progress()), (1, 0), "case {give_up:03b}");
    }
}

/// TSK-1, PRM-4: a caller dropped after any poll leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn tsk_1_a_caller_dropped_after_any_poll_leaves_nothing() {
    for polls in 0..4 {
        let (flights, started) = (flights(), Arc::default());
        {
            let mut call = Box::pin(flights.run("key".into(), work(&started, millis(10), Ok(7))));
            for _ in 0..polls {
                let _ = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
                sleep(millis(3)).await;
            }
        }
        sleep(millis(20)).await;
        assert_eq!((started.load(Ordering::Relaxed), flights.in_progress()), (usize::from(polls > 0), 0));
    }
}

/// TSK-1. Traps "leader panic" and "error caching": a panic or an error reaches all who waited and nobody who comes later.
#[tokio::test(start_paused = true)]
async fn tsk_1_a_panic_or_an_error_reaches_those_who_waited() {
    let (flights, started) = (flights(), Arc::default());
    for panics in [true, false] {
        let mut callers = JoinSet::new();
        for _ in 0..5 {
            let (flights, work) = (flights.clone(), work(&started, millis(10), Err(refused())));
            callers.spawn(async move {
                let work = async move || {
                    let result = work().await;
                    assert!(!panics, "boom {}", 7);
                    result
                };
                flights.run("key".into(), work).await.unwrap_err()
            });
        }
        for failure in callers.join_all().await {
            match failure {
                SharedWorkError::Panicked(message) => assert_eq!((&*message, panics), ("boom 7", true)),
                failure => {
                    assert_eq!(
                        failure.cause::<std::io::Error>().unwrap().kind(),
                        std::io::ErrorKind::ConnectionRefused
                    );
                }
            }
        }
    }
    assert_eq!((started.load(Ordering::Relaxed), flights.in_progress()), (2, 0));
    // A panic of the closure itself, before there is a future.
    let closure = || -> std::future::Ready<Result<u32, std::io::Error>> { panic!("early") };
    assert!(matches!(flights.run("key".into(), closure).await, Err(SharedWorkError::Panicked(_))));
    assert_eq!(
        flights.run("key".into(), work(&started, millis(1), Ok(1))).await.unwrap(),
        1,
        "the next starts anew"
    );
}

/// TSK-1. Trap "leader's short deadline punishes followers": each caller has its own deadline, the work has another, and a
/// guard around sees a timeout as a timeout.
#[tokio::test(start_paused = true)]
async fn tsk_1_work_and_callers_have_deadlines_of_their_own() {
    let (flights, started) = (flights(), Arc::default());
    let hasty = {
        let (flights, work) = (flights.clone(), work(&started, secs(2), Ok(7)));
        let guard = Guard::builder("hasty").call_timeout(millis(100)).no_retry().build().unwrap();
        tokio::spawn(async move {
            let mut work = Some(work);
            guard.call(|_| flights.run("key".into(), work.take().unwrap())).await.unwrap_err().kind()
        })
    };
    tokio::task::yield_now().await;
    let patient = flights.run("key".into(), work(&started, secs(2), Ok(8)));
    assert_eq!(patient.await.unwrap(), 7, "the first caller's work, although that caller has gone");
    assert_eq!(hasty.await.unwrap(), Kind::TimedOut);

    let began = tokio::time::Instant::now();
    let guard = Guard::builder("peer").retry(Retry::max_attempts(1)).build().unwrap();
    let error =
        guard.call(|_| flights.run("slow".into(), work(&started, secs(60), Ok(1)))).await.unwrap_err();
    assert_eq!(
        (error.decided_by(), error.last_fault().class()),
        (Policy::Operation, seawall::Class::Timeout)
    );
    assert_eq!((began.elapsed(), flights.in_progress()), (secs(3), 0));
}

/// TSK-1. Trap "waiter registers after completion": who comes in the moment of the end sees the result or starts anew, and
/// never waits for nobody. Real threads, many rounds.
#[test]
fn tsk_1_nobody_waits_for_an_end_that_was() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let flights = flights();
        let mut callers = JoinSet::new();
        for _ in 0..8 {
            let flights = flights.clone();
            callers.spawn(async move {
                for n in 0..5_000_u32 {
                    // Ready at once, so that its end meets those who come.
                    let answer = flights.run("key".into(), move || async move { Ok::<_, std::io::Error>(n) });
                    timeout(secs(20), answer).await.expect("somebody waits for ever").unwrap();
                }
            });
        }
        callers.join_all().await;
        assert_eq!(flights.in_progress(), 0);
    });
}

/// TSK-1: where the runtime of the work ends, those who wait elsewhere are told.
#[test]
fn tsk_1_work_whose_runtime_ends_is_lost_and_not_waited_for() {
    let flights = flights();
    let dying = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let started = Arc::default();
    dying.block_on(async {
        let call = flights.run("key".into(), work(&started, secs(1), Ok(1)));
        assert!(timeout(millis(1), call).await.is_err());
    });
    let living = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let follower = flights.run("key".into(), work(&started, secs(1), Ok(2)));
    let mut follower = Box::pin(follower);
    assert!(seawall_testkit::poll_once(follower.as_mut()).is_pending());
    drop(dying);
    assert!(matches!(living.block_on(follower), Err(SharedWorkError::Lost)));
    assert_eq!(flights.in_progress(), 0);
}

/// Counts how often a future is polled.
struct Polled<F>(Pin<Box<F>>, Arc<AtomicUsize>);

impl<F: Future> Future for Polled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.as_mut().poll(cx)
    }
}

/// TSK-1. Trap "waiters spin (1 CPU second for a wait of 2 s)": a waiter is polled when it comes and when it is called.
#[tokio::test(start_paused = true)]
async fn tsk_1_waiters_sleep() {
    let (flights, started, polls) = (flights(), Arc::default(), Arc::<AtomicUsize>::default());
    let mut callers = JoinSet::new();
    for _ in 0..1_000 {
        let (flights, work, polls) = (flights.clone(), work(&started, secs(2), Ok(7)), polls.clone());
        callers.spawn(Polled(Box::pin(async move { flights.run("key".into(), work).await }), polls));
    }
    callers.join_all().await;
    assert_eq!((polls.load(Ordering::Relaxed), started.load(Ordering::Relaxed)), (2_000, 1));
}
