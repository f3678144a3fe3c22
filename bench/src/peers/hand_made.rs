//! What one writes without a library for all of it: tokio's timeout around backon's retry around recloser around a
//! permit of a semaphore around tokio's timeout of the attempt. Two smaller ones stand beside it: without the timeout of
//! the attempt, and without the semaphore.

use std::io;
use std::sync::Arc;

use ::backon::Retryable;
use ::recloser::AsyncRecloser;
use ::tokio::sync::Semaphore;
use ::tokio::time::error::Elapsed;
use ::tokio::time::timeout;

use super::{ATTEMPT_TIMEOUT, CALL_TIMEOUT, PERMITS, backon, recloser};
use crate::op::{Kind, op};
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    let (breaker, semaphore) = (recloser::breaker(), Arc::new(Semaphore::new(PERMITS)));
    rows.calls(Group::Stack, "hand-made stack", move || {
        let (breaker, semaphore) = (breaker.clone(), Arc::clone(&semaphore));
        async move |kind| whole(&breaker, &semaphore, kind).await
    });
    let (breaker, semaphore) = (recloser::breaker(), Arc::new(Semaphore::new(PERMITS)));
    rows.calls(Group::Stack, "hand-made stack, one timeout", move || {
        let (breaker, semaphore) = (breaker.clone(), Arc::clone(&semaphore));
        async move |kind| one_timeout(&breaker, &semaphore, kind).await
    });
    let breaker = recloser::breaker();
    rows.calls(Group::Stack, "hand-made stack, no semaphore", move || {
        let breaker = breaker.clone();
        async move |kind| no_semaphore(&breaker, kind).await
    });
}

// Written out three times on purpose: a helper that they share moves their futures once more, which costs them up to a tenth.

type Refused = ::recloser::Error<io::Error>;

async fn whole(breaker: &AsyncRecloser, semaphore: &Semaphore, kind: Kind) -> Result<u64, Refused> {
    let attempt = || {
        breaker.call(async {
            let _permit = semaphore.acquire().await.map_err(io::Error::other)?;
            timeout(ATTEMPT_TIMEOUT, op(kind)).await?
        })
    };
    let call = attempt.retry(backon::backoff()).when(is_fault);
    timeout(CALL_TIMEOUT, call).await.map_err(out_of_time)?
}

async fn one_timeout(breaker: &AsyncRecloser, semaphore: &Semaphore, kind: Kind) -> Result<u64, Refused> {
    let attempt = || {
        breaker.call(async {
            let _permit = semaphore.acquire().await.map_err(io::Error::other)?;
            op(kind).await
        })
    };
    let call = attempt.retry(backon::backoff()).when(is_fault);
    timeout(CALL_TIMEOUT, call).await.map_err(out_of_time)?
}

async fn no_semaphore(breaker: &AsyncRecloser, kind: Kind) -> Result<u64, Refused> {
    let attempt = || breaker.call(async { timeout(ATTEMPT_TIMEOUT, op(kind)).await? });
    let call = attempt.retry(backon::backoff()).when(is_fault);
    timeout(CALL_TIMEOUT, call).await.map_err(out_of_time)?
}

fn is_fault(error: &Refused) -> bool {
    matches!(error, Refused::Inner(_))
}

fn out_of_time(elapsed: Elapsed) -> Refused {
    Refused::Inner(elapsed.into())
}
