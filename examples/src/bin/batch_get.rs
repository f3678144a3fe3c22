//! A client that asks a peer for sets of ids: a circuit breaker in front, and one question for all who ask for the same set.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::task::BatchClient;
use seawall::{Breaker, Error, Guard, millis, secs};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = Arc::new(AtomicU32::new(0));
    let guard = Guard::builder("articles")
        .no_retry()
        .attempt_timeout(secs(2))
        .breaker(Breaker::consecutive_failures(2))
        .build()?;

    // Stands for a remote call. It fails for ids above 99.
    let count = asked.clone();
    let articles = BatchClient::new(guard, move |ids: Vec<u32>| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(millis(5)).await;
            match ids.iter().find(|id| **id > 99) {
                Some(_) => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                None => Ok(ids.into_iter().map(|id| format!("article {id}")).collect::<Vec<_>>()),
            }
        }
    });

    let (one, two, three) =
        tokio::join!(articles.get([3, 1, 2]), articles.get([1, 2, 3]), articles.get([2, 3, 1]));
    println!("three callers, {} question: {:?}", asked.load(Ordering::Relaxed), one?);
    assert_eq!(two?, three?);

    for _ in 0..3 {
        let failure = articles.get([100]).await.expect_err("it is down");
        let error = failure.cause::<Error<io::Error>>().expect("the guard's own error");
        println!("{error}");
    }
    println!("questions that reached the peer: {}", asked.load(Ordering::Relaxed));
    Ok(())
}
