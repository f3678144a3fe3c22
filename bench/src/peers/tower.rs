//! tower: its timeout, its retry with the policy of its documentation and a `TpsBudget`, its concurrency limit. A thread
//! has a clone of the service, which it drives by `ready` and `call`, as tower's own clients do.

use std::future::{Ready, ready};
use std::sync::Arc;

use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use super::{ATTEMPT_TIMEOUT, CALL_TIMEOUT, PERMITS};
use crate::op::{Kind, op};
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    let timeout = ServiceBuilder::new().timeout(ATTEMPT_TIMEOUT).service_fn(op);
    service(rows, Group::Timeouts, "tower timeout", timeout);

    let retry = ServiceBuilder::new().retry(Attempts::new()).service_fn(op);
    service(rows, Group::Retry, "tower retry with TpsBudget", retry);

    let limit = ServiceBuilder::new().concurrency_limit(PERMITS).service_fn(op);
    service(rows, Group::Admission, "tower concurrency limit", limit);

    let stack = ServiceBuilder::new()
        .timeout(CALL_TIMEOUT)
        .retry(Attempts::new())
        .concurrency_limit(PERMITS)
        .timeout(ATTEMPT_TIMEOUT)
        .service_fn(op);
    service(rows, Group::Stack, "tower: timeouts, retry + budget, limit", stack);

    let limit = || ServiceBuilder::new().concurrency_limit(PERMITS).service(service_fn(op));
    rows.footprint("tower concurrency limit", limit, async |service, kind| {
        service.ready().await.expect("the operation is always ready").call(kind).await
    });
}

/// Adds a row of a tower service, shared by cloning it once per thread.
pub(crate) fn service<S>(rows: &mut Rows, group: Group, name: &str, service: S)
where
    S: Service<Kind, Response = u64> + Clone + Send + 'static,
    S::Error: 'static,
{
    let service = std::sync::Mutex::new(service);
    rows.calls(group, name, move || {
        let mut service = service.lock().expect("cloning does not panic").clone();
        async move |kind| service.ready().await?.call(kind).await
    });
}

/// The policy of tower's documentation: a number of attempts, and a budget that all callers share.
#[derive(Clone)]
struct Attempts {
    left: usize,
    budget: Arc<TpsBudget>,
}

impl Attempts {
    fn new() -> Self {
        Self { left: 2, budget: Arc::new(TpsBudget::default()) }
    }
}

impl<E> Policy<Kind, u64, E> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Kind, result: &mut Result<u64, E>) -> Option<Self::Future> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        if self.left == 0 || !self.budget.withdraw() {
            return None;
        }
        self.left -= 1;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Kind) -> Option<Kind> {
        Some(*request)
    }
}
