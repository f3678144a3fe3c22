//! What answers where the guard has no answer.

use seawall::fallback::FallbackFilter;
use seawall::{Error, Guard, guarded};

use crate::support::{Flaky, PaymentError, guard, refused};

type Failed = Error<std::io::Error>;

#[guarded(guard = guard, fallback = bare)]
async fn value(guard: &Guard, peer: &Flaky) -> Result<u32, Failed> {
    peer.fetch().await
}

fn bare(_guard: &Guard, peer: &Flaky, error: &Failed) -> u32 {
    100 * peer.attempts() + error.attempts()
}

/// ENG-16: a fallback gets the arguments of the function and the error, and may return the bare value.
#[tokio::test]
async fn a_function_answers_with_a_value() {
    let guard = guard("value");
    assert_eq!(value(&guard, &Flaky::new(9)).await.unwrap(), 101);
    assert_eq!(value(&guard, &Flaky::new(0)).await.unwrap(), 1);
}

/// ENG-16: a fallback may return an option, a result, or a future of either; closures see the arguments too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_may_have_nothing_fail_or_be_async() {
    #[guarded(guard = guard, fallback = |error| (error.attempts() == 7).then_some(7))]
    async fn nothing(guard: &Guard, peer: &Flaky) -> Result<u32, Failed> {
        peer.fetch().await
    }
    #[guarded(guard = guard, fallback = async |_| peer.fetch().await.map_err(PaymentError::from))]
    async fn asked_again(guard: &Guard, peer: &Flaky) -> Result<u32, PaymentError> {
        Ok(peer.fetch().await?)
    }
    #[guarded(guard = guard, fallback = refuse)]
    async fn fails(guard: &Guard) -> Result<u32, PaymentError> {
        Err(refused().into())
    }
    async fn refuse(_: &Guard, error: &Error<PaymentError>) -> Result<u32, std::io::Error> {
        assert!(matches!(error.last(), Some(PaymentError::Io(_))));
        Err(std::io::ErrorKind::StorageFull.into())
    }
    let guard = guard("shapes");
    let tested = tokio::spawn(async move {
        let error = nothing(&guard, &Flaky::new(9)).await.unwrap_err();
        assert_eq!(error.last().map(std::io::Error::kind), Some(std::io::ErrorKind::ConnectionReset));
        assert_eq!(asked_again(&guard, &Flaky::new(1)).await.unwrap(), 2);
        let error = fails(&guard).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{:?}", PaymentError::Io(std::io::ErrorKind::StorageFull.into()))
        );
    });
    tested.await.unwrap();
}

/// ENG-16: blocking functions have the same fallbacks, without a runtime.
#[test]
fn a_blocking_function_has_fallbacks_too() {
    #[guarded(guard = guard, idempotent, fallback = other)]
    fn read(guard: &Guard, peer: &Flaky) -> Result<u32, Failed> {
        peer.ask()
    }
    fn other(_: &Guard, peer: &Flaky, _: &Failed) -> Result<u32, Failed> {
        Ok(peer.attempts() * 10)
    }
    let guard = guard("disk");
    assert_eq!(read(&guard, &Flaky::new(9)).unwrap(), 30);
    assert_eq!(read(&guard, &Flaky::new(2)).unwrap(), 3);
}

/// ENG-16: a function that returns nothing can have a fallback that returns nothing.
#[tokio::test]
async fn nothing_is_a_value() {
    #[guarded(guard = guard, fallback = |_| ())]
    async fn publish(guard: &Guard) -> Result<(), Failed> {
        Err(refused())
    }
    publish(&guard("kafka")).await.unwrap();
}

/// ENG-16: `when` and `dead_letter` are those of the call builder.
#[tokio::test]
async fn when_and_dead_letter_are_passed_on() {
    #[guarded(guard = guard, idempotent, fallback = |_| 0, when = FallbackFilter::rejections(),
              dead_letter = |error: &Failed| kept.lock().unwrap().push(error.attempts()))]
    async fn send(guard: &Guard, kept: &std::sync::Mutex<Vec<u32>>) -> Result<u32, Failed> {
        Err(refused())
    }
    let kept = std::sync::Mutex::default();
    let error = send(&guard("mail"), &kept).await.unwrap_err();
    assert_eq!(error.attempts(), 3, "it failed and was not rejected");
    assert_eq!(*kept.lock().unwrap(), [3]);
}
