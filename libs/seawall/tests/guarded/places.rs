//! Where guarded functions stand: traits, structs behind `Arc`, handlers, spawned tasks.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use seawall::{Fault, Guard, guarded};
use tower::ServiceExt;

use crate::support::{Flaky, PaymentError, guard};

/// What the domain asks for. It knows nothing of guards.
trait Payments: Send + Sync {
    fn charge(&self, order: &str) -> impl Future<Output = Result<String, PaymentError>> + Send;
}

struct Gateway {
    guard: Guard,
    peer: Flaky,
}

impl Gateway {
    fn new(failures: u32) -> Arc<Self> {
        Arc::new(Gateway { guard: guard("payments"), peer: Flaky::new(failures) })
    }

    #[guarded(guard = self.guard, idempotent)]
    pub(crate) async fn refund<'a, T: AsRef<str> + Sync + ?Sized>(
        self: &Arc<Self>,
        order: &'a T,
    ) -> Result<&'a str, seawall::Error<std::io::Error>> {
        self.peer.fetch().await?;
        Ok(order.as_ref())
    }
}

impl Payments for Gateway {
    #[guarded(guard = self.guard, idempotent, classify = judge, fallback = pending)]
    async fn charge(&self, order: &str) -> Result<String, PaymentError> {
        let attempt = self.peer.fetch().await?;
        if order == "stolen" {
            return Err(PaymentError::Declined);
        }
        Ok(format!("{order} charged in attempt {attempt}"))
    }
}

/// A card that is declined is an answer.
fn judge(result: &Result<String, PaymentError>) -> Option<Fault> {
    result.as_ref().err().map(|error| match error {
        PaymentError::Declined => Fault::business(),
        other => Fault::of_error(other),
    })
}

impl Gateway {
    async fn pending(
        &self,
        order: &str,
        error: &seawall::Error<PaymentError>,
    ) -> Result<String, PaymentError> {
        tokio::task::yield_now().await;
        Ok(format!("{order} pending after {} attempts", error.attempts()))
    }
}

async fn checkout<P: Payments>(payments: Arc<P>, order: String) -> Result<String, PaymentError> {
    payments.charge(&order).await
}

/// ENG-16: the future of a guarded method is `Send`, also through a trait that asks for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_of_a_trait_keeps_its_signature_and_can_be_spawned() {
    let charged = tokio::spawn(checkout(Gateway::new(2), "A-7".into())).await.unwrap();
    assert_eq!(charged.unwrap(), "A-7 charged in attempt 3");
    let pending = tokio::spawn(checkout(Gateway::new(9), "A-7".into())).await.unwrap();
    assert_eq!(pending.unwrap(), "A-7 pending after 3 attempts");
}

/// ENG-16: generics, lifetimes and receivers other than `&self` stay what they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generic_method_behind_an_arc_may_return_what_it_borrows() {
    let gateway = Gateway::new(1);
    let refunded = tokio::spawn(async move { gateway.refund("A-7").await.map(str::to_owned) });
    assert_eq!(refunded.await.unwrap().unwrap(), "A-7");
}

/// ENG-16: a handler of axum can call guarded methods, with fallback and borrowed arguments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_of_axum_calls_it() {
    async fn handler(State(gateway): State<Arc<Gateway>>) -> String {
        let order = String::from("A-7");
        gateway.charge(&order).await.unwrap_or_else(|error| error.to_string())
    }
    let app = axum::Router::new().route("/", get(handler)).with_state(Gateway::new(9));
    let request = http::Request::get("/").body(axum::body::Body::empty()).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
    assert_eq!(body, "A-7 pending after 3 attempts");
}

/// ENG-16: `return` and `?` in the body end the attempt, and an error of the application's own comes out as itself.
#[tokio::test]
async fn a_business_error_is_neither_retried_nor_replaced() {
    let gateway = Gateway::new(0);
    let error = gateway.charge("stolen").await.unwrap_err();
    assert!(matches!(error, PaymentError::Declined), "{error:?}");
    assert_eq!(gateway.peer.attempts(), 1);
}
