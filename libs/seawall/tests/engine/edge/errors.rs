//! The errors that people have.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;

use seawall::{Backoff, Fault, Guard, Kind, Retry, millis};

fn guard() -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1))).no_budget();
    Guard::builder("warehouse").retry(retry).build().unwrap()
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// ENG-16: an operation that returns `anyhow::Result` needs no ceremony, is judged by its causes, and `?` works.
#[tokio::test(start_paused = true)]
async fn eng_16_anyhow_works_without_ceremony() {
    async fn stock(guard: &Guard, tries: &mut u32) -> anyhow::Result<u32> {
        let stock = guard
            .idempotent()
            .call_on(tries, async |mut tries, _| {
                *tries += 1;
                let read: io::Result<u32> = if *tries < 3 { Err(reset()) } else { Ok(7) };
                let stock = anyhow::Context::context(read, "reading the stock")?;
                anyhow::Ok(stock)
            })
            .await?;
        Ok(stock)
    }
    let (guard, mut tries) = (guard(), 0);
    assert_eq!((stock(&guard, &mut tries).await.unwrap(), tries), (7, 3));
    let error = async {
        guard
            .idempotent()
            .call(|_| async { Err::<u32, _>(anyhow::Error::from(reset()).context("reading")) })
            .await?;
        anyhow::Ok(())
    };
    let error = error.await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "warehouse: gave up after 3 attempts: i/o fault (connection reset): reading: connection reset"
    );
    let again = guard.idempotent().run(|_| -> anyhow::Result<u32> { anyhow::bail!("no idea") }).unwrap_err();
    assert_eq!((again.kind(), again.attempts()), (Kind::Failed, 1), "what nobody knows is not retried");
}

/// ENG-16: `eyre` and boxes likewise, `Send` or not.
#[tokio::test(start_paused = true)]
async fn eng_16_eyre_and_boxes_work_without_ceremony() {
    type Boxed = Box<dyn StdError + Send + Sync>;
    async fn in_eyre(guard: &Guard) -> eyre::Result<u32> {
        guard.idempotent().call(|_| async { Err::<u32, eyre::Report>(eyre::Report::new(reset())) }).await?;
        Ok(1)
    }
    async fn in_a_box(guard: &Guard) -> Result<u32, Boxed> {
        Ok(guard.idempotent().call(|_| async { Err::<u32, Boxed>(reset().into()) }).await?)
    }
    async fn in_a_local_box(guard: &Guard) -> Result<u32, Box<dyn StdError>> {
        let error =
            guard.idempotent().call(|_| async { Err::<u32, Box<dyn StdError>>(reset().into()) }).await;
        assert_eq!(error.as_ref().map_err(seawall::Error::attempts), Err(3));
        Ok(error?)
    }
    let guard = guard();
    let text = "warehouse: gave up after 3 attempts: i/o fault (connection reset)";
    assert_eq!(in_eyre(&guard).await.unwrap_err().to_string(), text);
    assert_eq!(in_a_box(&guard).await.unwrap_err().to_string(), text);
    assert_eq!(in_a_local_box(&guard).await.unwrap_err().to_string(), text);
}

/// ENG-16: texts, numbers and values that are no errors at all work too; what they mean is said by a classifier.
#[tokio::test(start_paused = true)]
async fn eng_16_values_that_are_no_errors_work_too() {
    #[derive(Debug, PartialEq, Clone, Copy)]
    enum Payment {
        Declined,
        Busy,
    }
    async fn pay(guard: &Guard, answer: Payment) -> anyhow::Result<u32> {
        let judge = |result: &Result<u32, Payment>| match result {
            Ok(_) => None,
            Err(Payment::Declined) => Some(Fault::business()),
            Err(Payment::Busy) => Some(Fault::throttled()),
        };
        Ok(guard.idempotent().classify(judge).call(|_| async move { Err(answer) }).await?)
    }
    let guard = guard();
    let error = pay(&guard, Payment::Declined).await.unwrap_err();
    assert_eq!(format!("{error:#}"), "warehouse: failed after 1 attempt: business fault: Declined");
    let error = pay(&guard, Payment::Busy).await.unwrap_err();
    let error = error.downcast_ref::<seawall::Error<Payment>>().unwrap();
    assert_eq!((error.attempts(), error.last()), (3, Some(&Payment::Busy)));
    let text = guard.call(|_| async { Err::<(), _>("no such thing") }).await.unwrap_err();
    assert_eq!(
        (text.last(), text.source().unwrap().to_string()),
        (Some(&"no such thing"), "\"no such thing\"".into())
    );
    assert!(guard.call(|_| async { Err::<(), String>(String::new()) }).await.is_err());
    assert!(guard.call(|_| async { Err::<(), Cow<'static, str>>("x".into()) }).await.is_err());
    assert!(guard.call(|_| async { Err::<(), i32>(-1) }).await.is_err());
    assert!(guard.call(|_| async { Ok::<u32, std::convert::Infallible>(1) }).await.is_ok());
}

/// ENG-11: the error names its guard, and its times are rounded.
#[tokio::test(start_paused = true)]
async fn eng_11_the_error_names_its_guard_and_rounds_its_times() {
    let guard =
        Guard::builder("payments").breaker(seawall::Breaker::consecutive_failures(1)).no_retry().build();
    let guard = guard.unwrap();
    assert!(guard.idempotent().call(|_| async { Err::<u32, _>(reset()) }).await.is_err());
    tokio::time::advance(millis(25_260)).await;
    let error = guard.idempotent().call(|_| async { io::Result::Ok(1) }).await.unwrap_err();
    assert_eq!((error.guard(), error.attempts()), ("payments", 0));
    assert_eq!(error.to_string(), "payments: rejected by the breaker after no attempt; try again in 4.7s");
}

/// ENG-16: generic code over errors compiles with the usual bound.
#[tokio::test]
async fn eng_16_generic_code_needs_one_bound() {
    async fn twice<E: StdError + Send + Sync + 'static>(
        guard: &Guard,
        operation: impl Fn() -> Result<u32, E> + Sync,
    ) -> anyhow::Result<u32> {
        let first = guard.idempotent().call(|_| std::future::ready(operation())).await?;
        let second = guard.idempotent().or_value(3).call(|_| std::future::ready(operation())).await?;
        Ok(first + *second)
    }
    assert_eq!(twice(&guard(), || io::Result::Ok(4)).await.unwrap(), 8);
}
