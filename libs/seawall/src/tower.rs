//! A guard as a layer of tower services.
#![doc = ""]
#![doc = include_str!("../docs/tower.md")]

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::error::Error;
use crate::fault::{Causes, Classify};
use crate::guard::Guard;
use crate::retry::Safety;

/// A request that may be sent more than once.
pub trait Replay: Sized {
    /// The same request once more; `None` if it can't be sent again, as when its body is a stream that was read. Then there
    /// is one attempt.
    fn try_clone(&self) -> Option<Self>;

    /// Whether it is safe to send it again after it may have been served already.
    fn safety(&self) -> Safety {
        Safety::Once
    }
}

/// Puts a [`Guard`] around a service.
#[derive(Clone, Debug)]
pub struct GuardLayer<C = Causes> {
    guard: Guard,
    classify: C,
}

impl GuardLayer {
    /// A layer that judges errors by their causes.
    #[must_use]
    pub fn new(guard: Guard) -> Self {
        GuardLayer { guard, classify: Causes }
    }
}

impl<C> GuardLayer<C> {
    /// Judges responses and errors by `classify`.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> GuardLayer<C2> {
        GuardLayer { guard: self.guard, classify }
    }
}

impl<S, C: Clone> Layer<S> for GuardLayer<C> {
    type Service = Guarded<S, C>;

    fn layer(&self, inner: S) -> Guarded<S, C> {
        Guarded { guard: self.guard.clone(), classify: self.classify.clone(), inner }
    }
}

/// A service behind a guard. Made by [`GuardLayer`].
#[derive(Clone)]
pub struct Guarded<S, C = Causes> {
    guard: Guard,
    classify: C,
    inner: S,
}

/// A call of a guarded service under way.
pub type ResponseFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, Error<E>>> + Send>>;

impl<S, C, Req> Service<Req> for Guarded<S, C>
where
    S: Service<Req> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    C: Classify<S::Response, S::Error> + Clone + Send + Sync + 'static,
    Req: Replay + Send + Sync + 'static,
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
        let Guarded { guard, classify, inner } = self.clone();
        Box::pin(async move {
            let safety = request.safety();
            // The last copy is the original: one that can't be copied is sent once.
            let (mut once, again) = match request.try_clone() {
                Some(copy) => (Some(copy), Some(request)),
                None => (Some(request), None),
            };
            let mut terms = guard.classify(classify).safety(safety);
            if again.is_none() {
                terms = terms.single_attempt();
            }
            let operation = |_| {
                let request = once.take().or_else(|| again.as_ref().and_then(Replay::try_clone));
                let mut service = inner.clone();
                async move {
                    let request = request.expect("a request that was copied once can be copied again");
                    poll_fn(|cx| service.poll_ready(cx)).await?;
                    service.call(request).await
                }
            };
            terms.call(operation).await
        })
    }
}

impl<S, C> fmt::Debug for Guarded<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("guard", &self.guard).finish_non_exhaustive()
    }
}
