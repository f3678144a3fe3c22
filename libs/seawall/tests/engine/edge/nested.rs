//! Guards within guards: they neither multiply nor charge one another.

use std::error::Error as _;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::breaker::State;
use seawall::{Attempt, Backoff, Breaker, Deadline, Error, Fault, Guard, Kind, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

/// An error as an application has it: a guard's error is its cause.
#[derive(Debug)]
enum AppError {
    Wrapped(Error<std::io::Error>),
    /// As `#[error(transparent)]` makes it: text and source are those of what it holds.
    Transparent(Error<std::io::Error>),
    Other(std::io::Error),
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppError::Transparent(error) => error.fmt(f),
            _ => f.write_str("the application failed"),
        }
    }
}

impl std::error::Error for AppError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AppError::Wrapped(error) => Some(error),
            AppError::Transparent(error) => error.source(),
            AppError::Other(error) => Some(error),
        }
    }
}

fn quick(attempts: u32) -> Retry {
    Retry::max_attempts(attempts).backoff(Backoff::constant(millis(5))).no_budget()
}

fn guard(name: &str) -> Guard {
    Guard::builder(name).retry(quick(3)).call_timeout(secs(60)).build().unwrap()
}

fn reset() -> std::io::Error {
    std::io::ErrorKind::ConnectionReset.into()
}

/// ENG-16, ENG-3: three nested guards with three attempts each send three times, whatever stands between them.
#[tokio::test(start_paused = true)]
async fn eng_16_three_nested_guards_send_three_times() {
    let (a, b, c) = (guard("a"), guard("b"), guard("c"));
    let sent = AtomicU32::new(0);
    let send = || {
        sent.fetch_add(1, Ordering::Relaxed);
        std::future::ready(std::io::Result::<u32>::Err(reset()))
    };
    let innermost = || c.idempotent().call(|_| send());
    // Passed on as it is.
    let direct = a.idempotent().call(|_| async { b.idempotent().call(|_| innermost()).await });
    assert_eq!(direct.await.unwrap_err().kind(), Kind::Failed);
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
    // In an error of the application's own, with an await in between.
    let wrapped = |wrap: fn(Error<std::io::Error>) -> AppError| {
        let (b, innermost) = (&b, &innermost);
        move |_: Attempt| async move {
            let middle = b.idempotent().call(|_| async {
                let result = innermost().await;
                tokio::time::sleep(millis(1)).await;
                result.map_err(wrap)
            });
            let result = middle.await;
            tokio::task::yield_now().await;
            result
        }
    };
    assert!(a.idempotent().call(wrapped(AppError::Wrapped)).await.is_err());
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
    assert!(a.idempotent().call(wrapped(AppError::Transparent)).await.is_err());
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
    // In `anyhow`, with context, from another task, and joined with something else.
    let anyhow = a.idempotent().call(|_| async {
        let inner = async { anyhow::Context::context(innermost().await, "asking the warehouse") };
        let (result, ()) = tokio::join!(inner, tokio::time::sleep(millis(2)));
        result
    });
    assert!(anyhow.await.is_err());
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
    let spawned = a.idempotent().call(|_| async {
        let c = c.clone();
        let count = &sent;
        let task = tokio::spawn(async move {
            let counted = AtomicU32::new(0);
            let result = c
                .idempotent()
                .call(|_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    std::future::ready(std::io::Result::<u32>::Err(reset()))
                })
                .await;
            (result, counted.into_inner())
        });
        let (result, counted) = task.await.unwrap();
        count.fetch_add(counted, Ordering::Relaxed);
        result
    });
    assert!(spawned.await.is_err());
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
    // As the reason of an I/O error.
    let hidden = a.idempotent().call(|_| async { innermost().await.map_err(std::io::Error::other) });
    assert!(hidden.await.is_err());
    assert_eq!(sent.swap(0, Ordering::Relaxed), 3);
}

/// ENG-16: answers that are judged faults do not multiply either, also with an await in between.
#[tokio::test(start_paused = true)]
async fn eng_16_nested_guards_do_not_multiply_wrong_answers() {
    let by_status = |result: &std::io::Result<u16>| match result {
        Ok(status) => Fault::of_http(*status),
        Err(error) => Some(Fault::of_io(error.kind())),
    };
    let (a, b) = (guard("a"), guard("b"));
    let sent = AtomicU32::new(0);
    let send = |_: Attempt| {
        sent.fetch_add(1, Ordering::Relaxed);
        std::future::ready(std::io::Result::Ok(503))
    };
    let nested = a.idempotent().classify(by_status).call(|_| async {
        let answer = b.idempotent().classify(by_status).call(send).await;
        tokio::time::sleep(millis(1)).await;
        answer.map_err(std::io::Error::other)
    });
    assert_eq!((nested.await.unwrap(), sent.swap(0, Ordering::Relaxed)), (503, 3));
    // A guard that does not retry leaves it to the one around.
    let bare = Guard::builder("bare").no_retry().build().unwrap();
    let nested = a.idempotent().classify(by_status).call(|_| async {
        bare.idempotent().classify(by_status).call(send).await.map_err(std::io::Error::other)
    });
    assert_eq!((nested.await.unwrap(), sent.into_inner()), (503, 3));
}

/// ENG-16, ENG-5: an open cache circuit that is treated as a miss does not hide the failures of the database.
#[test]
fn eng_16_a_handled_failure_of_another_guard_is_not_charged_to_this_one() {
    let hands = ManualClock::new();
    let breaker = || Breaker::consecutive_failures(5);
    let build =
        |name: &str| Guard::builder(name).clock(hands.clock()).no_retry().breaker(breaker()).build().unwrap();
    let cache = build("cache");
    cache.breaker().unwrap().force_open("maintenance");
    let read = |database: &Guard, blocking: bool| {
        let from_database = || std::io::Result::<u32>::Err(reset());
        if blocking {
            let _ = database.idempotent().run(|_| {
                let _miss = cache.idempotent().run(|_| std::io::Result::Ok(1));
                from_database()
            });
        } else {
            let _ = run(
                &hands,
                database.idempotent().call(async |_| {
                    let _miss = cache.idempotent().call(|_| async { std::io::Result::Ok(1) }).await;
                    from_database()
                }),
            );
        }
    };
    for blocking in [true, false] {
        let database = build("database");
        (0..5).for_each(|_| read(&database, blocking));
        assert_eq!(database.breaker().unwrap().state(), State::Open, "blocking: {blocking}");
    }
}

/// ENG-3, ENG-5: what a guard further in rejected does not count against the circuit around it.
#[tokio::test(start_paused = true)]
async fn eng_16_a_rejection_further_in_is_no_mark_against_the_outer_peer() {
    let outer =
        Guard::builder("outer").retry(quick(3)).breaker(Breaker::consecutive_failures(2)).build().unwrap();
    let inner = Guard::builder("inner").no_retry().breaker(Breaker::default()).build().unwrap();
    inner.breaker().unwrap().force_open("maintenance");
    for _ in 0..10 {
        let call = outer.idempotent().call(async |_| {
            let result = inner.idempotent().call(|_| async { std::io::Result::Ok(1) }).await;
            tokio::time::sleep(millis(1)).await;
            result.map_err(AppError::Wrapped)
        });
        let error = call.await.unwrap_err();
        assert_eq!(error.attempts(), 1, "a rejection is not retried");
        assert!(error.source().is_some());
    }
    assert_eq!(outer.breaker().unwrap().state(), State::Closed);
    let other = outer.idempotent().call(|_| async { Err::<u32, _>(AppError::Other(reset())) }).await;
    assert_eq!(
        other.unwrap_err().kind(),
        Kind::Rejected,
        "two failures of its own open it, and refuse the third attempt"
    );
    assert_eq!(Deadline::current(), None);
}
