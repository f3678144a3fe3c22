//! What is said about the call, and the errors that functions declare.

use std::sync::atomic::{AtomicU32, Ordering};

use seawall::{Error, Fault, Guard, Hedge, Key, guarded, millis, secs};

use crate::support::{Flaky, guard, refused};

type Failed = Error<std::io::Error>;

/// ENG-16: without a word about it, a call is not repeated once it may have run.
#[tokio::test]
async fn safety_is_once_unless_it_is_said() {
    #[guarded(guard = guard)]
    async fn plain(guard: &Guard, peer: &Flaky) -> Result<u32, Failed> {
        peer.fetch().await
    }
    #[guarded(guard = guard, keyed, attempt)]
    async fn keyed(guard: &Guard, peer: &Flaky, keys: &std::sync::Mutex<Vec<Key>>) -> Result<u32, Failed> {
        keys.lock().unwrap().push(attempt.key());
        peer.fetch().await
    }
    #[guarded(guard = guard, key = order, attempt)]
    fn own_key(guard: &Guard, order: Key) -> Result<bool, Failed> {
        Ok(attempt.key() == order)
    }
    let guard = guard("safety");
    assert_eq!(plain(&guard, &Flaky::new(1)).await.unwrap_err().attempts(), 1);
    let keys = std::sync::Mutex::default();
    assert_eq!(keyed(&guard, &Flaky::new(2), &keys).await.unwrap(), 3);
    let keys = keys.into_inner().unwrap();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(own_key(&guard, Key::named("order 7")).unwrap());
}

/// ENG-16: the name of the function is what the operation is called, unless it is given another.
#[tokio::test]
async fn events_carry_the_name_of_the_function_and_what_the_call_is_about() {
    #[guarded(guard = guard, about = &format!("order {order}"))]
    async fn charge(guard: &Guard, order: u32) -> Result<u32, Failed> {
        Ok(order)
    }
    #[guarded(guard = guard, operation = "POST /charges")]
    fn named(guard: &Guard) -> Result<u32, Failed> {
        Ok(1)
    }
    let guard = guard("labels");
    let mut events = guard.subscribe(8);
    charge(&guard, 7).await.unwrap();
    let event = format!("{:?}", events.try_next().unwrap());
    assert!(event.contains("charge") && event.contains("order 7"), "{event}");
    while events.try_next().is_some() {}
    named(&guard).unwrap();
    let event = format!("{:?}", events.try_next().unwrap());
    assert!(event.contains("POST /charges"), "{event}");
}

/// ENG-16: a classifier, an attempt timeout and hedges are those of the call builder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn classifier_timeout_and_hedges_are_passed_on() {
    fn odd(result: &Result<u32, String>) -> Option<Fault> {
        matches!(result, Ok(number) if number % 2 == 0).then(Fault::io)
    }
    #[guarded(guard = guard, idempotent, classify = odd)]
    async fn judged(guard: &Guard, count: &AtomicU32) -> Result<u32, Error<String>> {
        Ok(count.fetch_add(1, Ordering::Relaxed))
    }
    #[guarded(guard = guard, attempt_timeout = millis(1))]
    async fn slow(guard: &Guard) -> Result<u32, Failed> {
        tokio::time::sleep(secs(60)).await;
        Ok(1)
    }
    #[guarded(guard = guard, idempotent, hedged, attempt)]
    async fn hedged(guard: &Guard) -> Result<u32, Failed> {
        if attempt.hedge() == 0 {
            tokio::time::sleep(secs(60)).await;
        }
        Ok(attempt.hedge())
    }
    let plain = guard("judged");
    assert_eq!(judged(&plain, &AtomicU32::new(0)).await.unwrap(), 1);
    assert_eq!(slow(&plain).await.unwrap_err().kind(), seawall::Kind::TimedOut);
    let hedging = Guard::builder("hedged").hedge(Hedge::after(millis(1))).build().unwrap();
    assert_eq!(tokio::spawn(async move { hedged(&hedging).await }).await.unwrap().unwrap(), 1);
}

/// ENG-16: a function may return `anyhow::Result`, `eyre::Result`, a boxed error, or a result by another name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_have_many_names() {
    type Outcome<T> = Result<T, Failed>;

    #[guarded(guard = guard, idempotent)]
    async fn any(guard: &Guard, peer: &Flaky) -> anyhow::Result<u32> {
        let number = peer.fetch().await?;
        anyhow::ensure!(number > 0, "a number");
        Ok(number)
    }
    #[guarded(guard = guard, idempotent)]
    async fn report(guard: &Guard, peer: &Flaky) -> eyre::Result<u32> {
        Ok(peer.fetch().await?)
    }
    #[guarded(guard = guard, idempotent)]
    async fn boxed(guard: &Guard, peer: &Flaky) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        Ok(peer.fetch().await?)
    }
    #[guarded(guard = guard, idempotent, error = std::io::Error)]
    async fn alias(guard: &Guard, peer: &Flaky) -> Outcome<u32> {
        peer.fetch().await
    }
    #[guarded(guard = guard, idempotent, error = std::io::Error)]
    fn converted(guard: &Guard, peer: &Flaky) -> anyhow::Result<u32> {
        if peer.failures > 9 {
            return Err(refused());
        }
        peer.ask()
    }
    let tested = tokio::spawn(async {
        let guard = guard("names");
        assert_eq!(any(&guard, &Flaky::new(2)).await.unwrap(), 3);
        let error = any(&guard, &Flaky::new(9)).await.unwrap_err();
        assert!(error.downcast_ref::<Error<anyhow::Error>>().is_some(), "{error:?}");
        assert_eq!(report(&guard, &Flaky::new(2)).await.unwrap(), 3);
        assert_eq!(boxed(&guard, &Flaky::new(2)).await.unwrap(), 3);
        assert_eq!(alias(&guard, &Flaky::new(2)).await.unwrap(), 3);
        assert_eq!(converted(&guard, &Flaky::new(2)).unwrap(), 3);
    });
    tested.await.unwrap();
}
