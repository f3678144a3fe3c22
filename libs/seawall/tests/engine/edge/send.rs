//! Every public future is `Send` where its operation is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::failover::{Failover, Side};
use seawall::fallback::{FallbackFilter, LastGood, LastGoodMap};
use seawall::guard::Loan;
use seawall::{Attempt, Breaker, Error, Guard, Hedge, Retry, millis};

fn is_send<T: Send>(value: T) -> T {
    value
}

async fn answer() -> std::io::Result<u32> {
    Ok(3)
}

/// ENG-16: each of these is a compile-time assertion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_16_every_future_of_a_call_is_send() {
    let guard =
        Guard::builder("peer").hedge(Hedge::after(millis(20))).breaker(Breaker::default()).build().unwrap();
    let other = Guard::builder("other").build().unwrap();
    let (last, keyed) = (LastGood::new(), LastGoodMap::new(10));
    let io = |_: &Error<std::io::Error>| 7;
    let sink = |_: &Error<std::io::Error>| ();
    assert_eq!(is_send(guard.call(|_| answer())).await.unwrap(), 3);
    assert_eq!(is_send(guard.attempt(|_| answer())).await.unwrap(), 3);
    assert_eq!(is_send(guard.idempotent().hedged().call(|_| answer())).await.unwrap(), 3);
    assert_eq!(*is_send(guard.idempotent().or_value(1).call(|_| answer())).await.unwrap(), 3);
    assert_eq!(*is_send(guard.idempotent().or_else(io).call(|_| answer())).await.unwrap(), 3);
    assert_eq!(*is_send(guard.idempotent().or_last_good(&last).call(|_| answer())).await.unwrap(), 3);
    assert_eq!(
        *is_send(guard.idempotent().or_last_good(keyed.entry("a")).call(|_| answer())).await.unwrap(),
        3
    );
    let ask = |_: &Error<std::io::Error>| other.call(|_| answer());
    let all = guard
        .idempotent()
        .hedged()
        .or_last_good(&last)
        .or_ask(ask)
        .when(FallbackFilter::rejections())
        .dead_letter(sink)
        .call(|_| answer());
    assert_eq!(*is_send(all).await.unwrap(), 3);
    let pair = Failover::new(guard.clone(), other.clone()).unwrap();
    assert_eq!(*is_send(pair.idempotent().hedged().or_value(1).call(|_| answer())).await.unwrap(), 3);
    let mut sum = 0;
    let add = async |mut sum: Loan<'_, u32>, _: Attempt| {
        *sum += answer().await?;
        std::io::Result::Ok(*sum)
    };
    assert_eq!(is_send(guard.idempotent().call_on(&mut sum, add)).await.unwrap(), 3);
    assert_eq!(*is_send(guard.idempotent().or_value(0).call_on(&mut sum, add)).await.unwrap(), 6);
    assert_eq!(sum, 6);
}

/// ENG-16, ENG-9: a hedged call runs in a spawned task, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_16_a_hedged_call_can_be_spawned() {
    let guard =
        Guard::builder("peer").hedge(Hedge::after(millis(1))).retry(Retry::default()).build().unwrap();
    let sent = Arc::new(AtomicU32::new(0));
    let calls = (0..200).map(|_| {
        let (guard, sent) = (guard.clone(), sent.clone());
        tokio::spawn(async move {
            let operation = |_: Attempt| {
                sent.fetch_add(1, Ordering::Relaxed);
                async {
                    tokio::time::sleep(millis(3)).await;
                    std::io::Result::Ok(7)
                }
            };
            guard.idempotent().hedged().or_value(1).call(operation).await.map(|answer| *answer)
        })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), 7);
    }
    assert!(sent.load(Ordering::Relaxed) >= 200);
}

/// ENG-16: an operation may borrow what it works on, in a task of its own, with retries and a fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_16_an_operation_on_a_mutable_connection_can_be_spawned() {
    struct Connection(u32);
    impl Connection {
        async fn query(&mut self) -> std::io::Result<u32> {
            tokio::task::yield_now().await;
            self.0 += 1;
            if self.0 < 3 { Err(std::io::ErrorKind::ConnectionReset.into()) } else { Ok(self.0) }
        }
    }
    let guard = Guard::builder("database")
        .retry(Retry::max_attempts(3).backoff(seawall::Backoff::constant(millis(1))).no_budget())
        .build()
        .unwrap();
    let rows = tokio::spawn(async move {
        let mut connection = Connection(0);
        let rows = guard
            .idempotent()
            .call_on(&mut connection, async |mut connection, _| connection.query().await)
            .await;
        let fallback = guard
            .idempotent()
            .or_value(0)
            .call_on(&mut connection, async |mut connection, _| connection.query().await)
            .await;
        (rows.unwrap(), *fallback.unwrap(), connection.0)
    });
    assert_eq!(rows.await.unwrap(), (3, 4, 4));
}

/// ENG-16: answers and errors with lifetimes, and operations on what a task shares, fit into a task with all extras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_16_borrowed_answers_fit_into_a_task() {
    struct Databases(Vec<&'static str>);
    impl Databases {
        async fn query(&self, side: Side) -> Result<&'static str, &'static str> {
            tokio::task::yield_now().await;
            self.0.get(side.index()).copied().ok_or("no such side")
        }
    }
    let guard = || {
        Guard::builder("peer").breaker(Breaker::default()).hedge(Hedge::after(millis(20))).build().unwrap()
    };
    let pair = Failover::new(guard(), guard()).unwrap();
    let databases = Arc::new(Databases(vec!["rows"]));
    let task = tokio::spawn(async move {
        let last = LastGood::new();
        let query = |attempt: Attempt| databases.query(attempt.side());
        let request = pair.idempotent().hedged().or_last_good(&last).or_value("nothing");
        request.call(query).await.map(|answer| (answer.side(), *answer))
    });
    assert_eq!(task.await.unwrap(), Ok((Side::PRIMARY, "rows")));
}
