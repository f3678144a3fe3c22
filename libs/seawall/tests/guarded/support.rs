//! Guards, errors and counters that the tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use seawall::{Backoff, Guard, Retry, millis};

/// An error of the application's own, which knows what a guard's error is to it.
#[derive(Debug)]
pub(crate) enum PaymentError {
    Io(std::io::Error),
    Declined,
    Unavailable,
}

impl std::fmt::Display for PaymentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for PaymentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PaymentError::Io(error) => Some(error),
            PaymentError::Declined | PaymentError::Unavailable => None,
        }
    }
}

impl From<std::io::Error> for PaymentError {
    fn from(error: std::io::Error) -> Self {
        PaymentError::Io(error)
    }
}

impl From<seawall::Error<PaymentError>> for PaymentError {
    fn from(error: seawall::Error<PaymentError>) -> Self {
        error.into_last().unwrap_or(PaymentError::Unavailable)
    }
}

/// Three attempts, nearly without waits.
pub(crate) fn guard(name: &str) -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1)));
    Guard::builder(name).retry(retry).build().unwrap()
}

pub(crate) fn refused() -> std::io::Error {
    std::io::ErrorKind::ConnectionReset.into()
}

/// Fails so many times, then succeeds with the number of the attempt.
#[derive(Debug)]
pub(crate) struct Flaky {
    pub(crate) failures: u32,
    pub(crate) attempts: AtomicU32,
}

impl Flaky {
    pub(crate) fn new(failures: u32) -> Self {
        Flaky { failures, attempts: AtomicU32::new(0) }
    }

    pub(crate) fn ask(&self) -> std::io::Result<u32> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        if attempt <= self.failures { Err(refused()) } else { Ok(attempt) }
    }

    pub(crate) async fn fetch(&self) -> std::io::Result<u32> {
        tokio::task::yield_now().await;
        self.ask()
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }
}
