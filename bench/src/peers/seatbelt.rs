//! seatbelt: its breaker, whose window of 30 s is its default, its retry and its timeout, through its own service trait.
//!
//! Its clock reads the precise time unless told otherwise. It can be told to read the coarse one, which is what seawall
//! does by default, so the breaker stands here both ways.

use std::io;
use std::time::Duration;

use layered::{Execute, Service, Stack};
use seatbelt::breaker::Breaker;
use seatbelt::retry::Retry;
use seatbelt::timeout::Timeout;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;

use super::{ATTEMPT_TIMEOUT, BACKOFF, CALL_TIMEOUT, COOLDOWN, LONG_WINDOW};
use crate::body::with_runtime;
use crate::op::{Answer, Kind, op};
use crate::row::{Group, Rows};

type Context = ResilienceContext<Kind, Answer>;

const WINDOW: Duration = Duration::from_secs(30);

pub(super) fn add(rows: &mut Rows) {
    let clock = Clock::new_tokio();
    let precise = Context::new(&clock);
    let coarse = Context::new(clock.with_fast_instant(true));

    service(rows, Group::Timeouts, "seatbelt timeout", timeout(&precise, "timeout", ATTEMPT_TIMEOUT));
    service(rows, Group::Retry, "seatbelt retry, exponential", retry(&precise));
    service(rows, Group::BreakerTime, "seatbelt, 30 s", breaker(&precise, WINDOW));
    service(rows, Group::BreakerTime, "seatbelt, 30 s, coarse clock", breaker(&coarse, WINDOW));
    service(rows, Group::Stack, "seatbelt: timeouts, retry, breaker", stack(&precise));

    for (name, context) in [("seatbelt", &precise), ("seatbelt, coarse clock", &coarse)] {
        let context = context.clone();
        rows.by_entries(name, move |held| {
            let service = breaker(&context, LONG_WINDOW);
            call_often(&service, Kind::Ready, held);
            async move |kind| service.execute(kind).await
        });
    }
    for (name, context) in [("seatbelt, open", &precise), ("seatbelt, open, coarse clock", &coarse)] {
        let open = breaker(context, WINDOW);
        call_often(&open, Kind::Failing, 200);
        rows.rejections(name, move || {
            let service = open.clone();
            async move |kind| service.execute(kind).await
        });
    }

    rows.footprint("seatbelt, 30 s", || breaker(&precise, WINDOW), async |it, kind| it.execute(kind).await);
}

fn service<S>(rows: &mut Rows, group: Group, name: &str, service: S)
where
    S: Service<Kind, Out = Answer> + Clone + 'static,
{
    rows.calls(group, name, move || {
        let service = service.clone();
        async move |kind| service.execute(kind).await
    });
}

fn call_often(service: &impl Service<Kind, Out = Answer>, kind: Kind, times: u64) {
    with_runtime(|runtime| {
        runtime.block_on(async {
            for _ in 0..times {
                let _ = service.execute(kind).await;
            }
        });
    });
}

fn recovery(answer: &Answer) -> RecoveryInfo {
    if answer.is_ok() { RecoveryInfo::never() } else { RecoveryInfo::retry() }
}

fn breaker(
    context: &Context,
    window: Duration,
) -> impl Service<Kind, Out = Answer> + Clone + 'static + use<> {
    let breaker = Breaker::layer("breaker", context)
        .recovery_with(|answer, _| recovery(answer))
        .rejected_input_error(|_, _| io::ErrorKind::ConnectionRefused.into())
        .failure_threshold(0.5)
        .sampling_duration(window)
        .break_duration(COOLDOWN);
    (breaker, Execute::new(op)).into_service()
}

fn timeout(
    context: &Context,
    name: &'static str,
    after: Duration,
) -> impl Service<Kind, Out = Answer> + Clone + 'static + use<> {
    let timeout =
        Timeout::layer(name, context).timeout_error(|_| io::ErrorKind::TimedOut.into()).timeout(after);
    (timeout, Execute::new(op)).into_service()
}

fn retry(context: &Context) -> impl Service<Kind, Out = Answer> + Clone + 'static + use<> {
    let retry = Retry::layer("retry", context)
        .clone_input()
        .recovery_with(|answer, _| recovery(answer))
        .max_retry_attempts(2)
        .base_delay(BACKOFF);
    (retry, Execute::new(op)).into_service()
}

/// In the order that its documentation recommends, with a timeout for the whole call around it.
fn stack(context: &Context) -> impl Service<Kind, Out = Answer> + Clone + 'static + use<> {
    (
        Timeout::layer("call", context)
            .timeout_error(|_| io::ErrorKind::TimedOut.into())
            .timeout(CALL_TIMEOUT),
        Retry::layer("retry", context)
            .clone_input()
            .recovery_with(|answer, _| recovery(answer))
            .max_retry_attempts(2)
            .base_delay(BACKOFF),
        Breaker::layer("breaker", context)
            .recovery_with(|answer, _| recovery(answer))
            .rejected_input_error(|_, _| io::ErrorKind::ConnectionRefused.into())
            .failure_threshold(0.5)
            .break_duration(COOLDOWN),
        Timeout::layer("attempt", context)
            .timeout_error(|_| io::ErrorKind::TimedOut.into())
            .timeout(ATTEMPT_TIMEOUT),
        Execute::new(op),
    )
        .into_service()
}
