//! A payment provider behind an interface of the application: the adapter knows HTTP, the application does not. What the provider
//! refuses is an answer of the business, what it can't answer is retried, and while it is away payments wait.

use std::error::Error;
use std::fmt;

use reqwest::Client;
use seawall::client::ByStatus;
use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
use seawall_examples::serve;

/// What the application sees.
trait PaymentGateway {
    async fn pay(&self, payment: &Payment) -> Result<PaymentStatus, PaymentRefused>;
}

struct Payment {
    order: &'static str,
    cents: u32,
}

#[derive(Debug)]
enum PaymentStatus {
    Paid,
    /// The provider is away: the payment waits, and somebody looks at it.
    Pending,
}

/// The provider understood the payment and said no. Another attempt would not help.
#[derive(Debug)]
struct PaymentRefused(u16);

impl fmt::Display for PaymentRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the provider refused the payment with status {}", self.0)
    }
}

impl Error for PaymentRefused {}

struct ProviderAdapter {
    client: Client,
    url: String,
    guard: Guard,
}

impl ProviderAdapter {
    fn new(url: String) -> Result<Self, Box<dyn Error>> {
        let breaker = Breaker::failure_rate(50).over_calls(10).minimum_calls(5).probes(3).cooldown(secs(30));
        let guard = Guard::builder("paymentService")
            .attempt_timeout(secs(10))
            .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(5))))
            .breaker(breaker)
            .build()?;
        Ok(ProviderAdapter { client: Client::builder().no_proxy().build()?, url, guard })
    }
}

impl PaymentGateway for ProviderAdapter {
    async fn pay(&self, payment: &Payment) -> Result<PaymentStatus, PaymentRefused> {
        let body = format!(r#"{{"order":"{}","cents":{}}}"#, payment.order, payment.cents);
        // The provider recognises a repeated payment by its key, so it is safe to repeat.
        let send = || {
            let request = self.client.post(&self.url).header("idempotency-key", payment.order);
            request.header("content-type", "application/json").body(body.clone()).send()
        };
        match self.guard.idempotent().about(payment.order).classify(ByStatus).call(|_| send()).await {
            Ok(answer) if answer.status().is_success() => Ok(PaymentStatus::Paid),
            Ok(answer) if answer.status().is_client_error() => Err(PaymentRefused(answer.status().as_u16())),
            // The last answer of a provider that can't, an error, or a circuit that is open.
            Ok(_) | Err(_) => Ok(PaymentStatus::Pending),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let payment = Payment { order: "order-17", cents: 1_999 };

    let provider = ProviderAdapter::new(format!("http://{}/payments", serve([503, 0]).await?))?;
    println!("after a 503 and a closed connection: {:?}", provider.pay(&payment).await?);

    let provider = ProviderAdapter::new(format!("http://{}/payments", serve([422]).await?))?;
    let refused = provider.pay(&payment).await.expect_err("the provider said no");
    println!("refused at once: {refused}");

    let provider = ProviderAdapter::new("http://127.0.0.1:1/payments".to_owned())?;
    for _ in 0..3 {
        println!("nobody there: {:?}", provider.pay(&payment).await?);
    }
    let circuit = provider.guard.breaker().map(|breaker| breaker.state());
    println!("the circuit: {circuit:?}");
    Ok(())
}
