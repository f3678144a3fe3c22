//! The service that the layer makes.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tower_service::Service;

use super::{CopyRequest, FromRequest, GuardLayer, RequestSafety};
use crate::error::Error;
use crate::fault::{Causes, Classify, Ran};

/// A service behind a guard. Made by [`GuardLayer`].
#[derive(Clone)]
pub struct GuardService<S, C = Causes, R = FromRequest, P = FromRequest> {
    layer: GuardLayer<C, R, P>,
    inner: S,
}

/// A call of a guarded service under way.
pub type ResponseFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, Error<E>>> + Send>>;

impl<S, C, R, P> GuardService<S, C, R, P> {
    pub(super) fn new(layer: GuardLayer<C, R, P>, inner: S) -> Self {
        GuardService { layer, inner }
    }
}

impl<S, C, R, P, Req> Service<Req> for GuardService<S, C, R, P>
where
    S: Service<Req> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    C: Classify<S::Response, S::Error> + Clone + Send + 'static,
    R: CopyRequest<Req> + Clone + Send + 'static,
    P: RequestSafety<Req>,
    Req: Send + 'static,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = ResponseFuture<S::Response, S::Error>;

    /// Always ready: permits are taken in `call`, where they are given back by being dropped. A permit that is parked here
    /// would be lost whenever `call` never comes. Each attempt waits for the service behind it to be ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let safety = self.layer.safety.safety(&request);
        let GuardLayer { guard, classify, replay, .. } = &self.layer;
        let (guard, classify, replay) = (guard.clone(), classify.clone(), replay.clone());
        let inner = self.inner.clone();
        // The last copy is the original: one that can't be copied is sent once.
        let (mut first, again) = match replay.copy(&request) {
            Some(copy) => (Some(copy), Some(request)),
            None => (Some(request), None),
        };
        Box::pin(async move {
            let sent = &AtomicBool::new(false);
            let judge = move |result: &Result<S::Response, S::Error>| {
                let fault = classify.classify(result)?;
                // A service that never became ready was never given the request.
                Some(if sent.load(Ordering::Relaxed) { fault } else { fault.ran(Ran::No) })
            };
            let mut terms = guard.classify(judge).safety(safety);
            if again.is_none() {
                terms = terms.single_attempt();
            }
            // What it needs it owns: a reference that lives across an await would ask the service and the request for `Sync`.
            let operation = move |_| {
                let request =
                    first.take().or_else(|| again.as_ref().and_then(|request| replay.copy(request)));
                let mut service = inner.clone();
                sent.store(false, Ordering::Relaxed);
                async move {
                    let request = request.expect("a request that was copied once can be copied again");
                    poll_fn(|cx| service.poll_ready(cx)).await?;
                    sent.store(true, Ordering::Relaxed);
                    service.call(request).await
                }
            };
            terms.call(operation).await
        })
    }
}

impl<S, C, R, P> fmt::Debug for GuardService<S, C, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService").field("guard", &self.layer.guard).finish_non_exhaustive()
    }
}
