//! A guard as a layer of tower services.
#![doc = ""]
#![doc = include_str!("../../docs/tower.md")]

mod replay;
mod service;

pub use replay::{AlwaysOnce, CopyRequest, FromRequest, Replay, RequestSafety};
#[cfg(feature = "http")]
pub use replay::{ByMethod, copy_with_body};
pub use service::{GuardService, ResponseFuture};

use tower_layer::Layer;

use crate::fault::Causes;
use crate::guard::Guard;
use crate::retry::Safety;

/// Puts a [`Guard`] around a service.
///
/// `C` judges responses and errors, `R` copies requests, and `P` says how safe it is to send a request again.
#[derive(Clone, Debug)]
pub struct GuardLayer<C = Causes, R = FromRequest, P = FromRequest> {
    guard: Guard,
    classify: C,
    replay: R,
    safety: P,
}

impl GuardLayer {
    /// A layer that judges errors by their causes, and asks each request whether it may be sent again: see [`Replay`].
    #[must_use]
    pub fn new(guard: Guard) -> Self {
        GuardLayer { guard, classify: Causes, replay: FromRequest, safety: FromRequest }
    }
}

impl<C> GuardLayer<C> {
    /// Copies requests with this function, so that a type of another crate needs no [`Replay`]. A request for which it
    /// returns `None` gets one attempt.
    ///
    /// Such requests are [`Safety::Once`], until [`safety_with`](GuardLayer::safety_with) or
    /// [`safety_by_method`](GuardLayer::safety_by_method) says more.
    #[must_use]
    pub fn replay_with<Req, F>(self, copy: F) -> GuardLayer<C, F, AlwaysOnce>
    where
        F: Fn(&Req) -> Option<Req>,
    {
        GuardLayer { guard: self.guard, classify: self.classify, replay: copy, safety: AlwaysOnce }
    }
}

impl<C, R, P> GuardLayer<C, R, P> {
    /// Judges responses and errors by `classify`.
    #[must_use]
    pub fn classify<C2>(self, classify: C2) -> GuardLayer<C2, R, P> {
        GuardLayer { guard: self.guard, classify, replay: self.replay, safety: self.safety }
    }

    /// Asks this function how safe it is to send a request again.
    #[must_use]
    pub fn safety_with<Req, F>(self, safety: F) -> GuardLayer<C, R, F>
    where
        F: Fn(&Req) -> Safety,
    {
        GuardLayer { guard: self.guard, classify: self.classify, replay: self.replay, safety }
    }

    /// Goes by the method of an `http::Request`: all but `POST`, `PATCH`, `CONNECT` and unknown ones may be sent twice.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn safety_by_method(self) -> GuardLayer<C, R, ByMethod> {
        GuardLayer { guard: self.guard, classify: self.classify, replay: self.replay, safety: ByMethod }
    }
}

impl<S, C: Clone, R: Clone, P: Clone> Layer<S> for GuardLayer<C, R, P> {
    type Service = GuardService<S, C, R, P>;

    fn layer(&self, inner: S) -> Self::Service {
        GuardService::new(self.clone(), inner)
    }
}
