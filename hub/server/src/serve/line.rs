//! What is known of one connection, by those who serve it and those whose answer goes through it.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use hyper::rt::{Sleep, Timer};
use seawall::Deadline;
use seawall_hub_core::sync::Lock;

/// An answer that is not over so long after its deadline is not going to be: its client does not read.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The limits of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    /// Who is at the other end, as it is told to upstreams.
    pub(crate) peer: HeaderValue,
    pub(super) address: IpAddr,
    /// When the answer under way has to be over.
    deadline: Lock<Option<Deadline>>,
    pub(super) aborted: AtomicBool,
    /// Until when the headers of the next request have to come, if they are waited for.
    patience: Lock<Option<Instant>>,
    is_patience_over: AtomicBool,
    /// Since when its client has taken too little, if it has.
    stalled: Lock<Option<Instant>>,
}

impl ConnectionLimits {
    pub(super) fn new(address: IpAddr) -> Arc<Self> {
        let peer = HeaderValue::try_from(address.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
        Arc::new(ConnectionLimits {
            peer,
            address,
            deadline: Lock::default(),
            aborted: AtomicBool::new(false),
            patience: Lock::default(),
            is_patience_over: AtomicBool::new(false),
            stalled: Lock::default(),
        })
    }

    /// The answer under way has to be over then.
    pub(crate) fn expect_end_by(&self, deadline: Option<Deadline>) {
        *self.deadline.lock() = deadline;
    }

    /// When the answer under way has to be over, if one has a deadline.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        *self.deadline.lock()
    }

    /// Until when the headers of the next request have to come, if they are waited for.
    pub(super) fn patience(&self) -> Option<Instant> {
        *self.patience.lock()
    }

    fn wait_until(&self, patience: Option<Instant>) {
        *self.patience.lock() = patience;
    }

    /// Since when its client has taken too little of what there is for it, if it has.
    pub(super) fn stalled(&self) -> Option<Instant> {
        *self.stalled.lock()
    }

    pub(super) fn stall(&self, since: Option<Instant>) {
        *self.stalled.lock() = since;
    }

    /// They have not come.
    pub(super) fn end_patience(&self) {
        self.is_patience_over.store(true, Ordering::Relaxed);
    }

    /// What was sent is not all there is: the connection ends with a reset, so that nobody takes it for the whole.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

/// Hyper's clock for the headers of requests. It wants a timer for each of them; here they are times that are written down, and
/// whoever drives the connection has one timer for all.
#[derive(Clone, Debug)]
pub(super) struct ReadTimer(pub(super) Arc<ConnectionLimits>);

impl Timer for ReadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.wait_until(Some(deadline));
        Box::pin(TimerWait(self.0.clone()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        // The old one goes first, and takes its time with it.
        *sleep = Box::pin(NoTimer);
        *sleep = self.sleep_until(deadline);
    }
}

struct NoTimer;

impl Sleep for NoTimer {}

impl Future for NoTimer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

struct TimerWait(Arc<ConnectionLimits>);

impl Sleep for TimerWait {}

impl Future for TimerWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.is_patience_over.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for TimerWait {
    fn drop(&mut self) {
        self.0.wait_until(None);
    }
}
