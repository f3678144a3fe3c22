//! Guards an HTTP call: answers are judged by their status, a throttled one says when to come back, and what is down is left alone.

use std::io;
use std::time::SystemTime;

use seawall::fault::parse_retry_after;
use seawall::{Backoff, Breaker, Fault, Guard, Retry, millis, secs};
use seawall_examples::{Answer, get, serve};

/// What an answer means. Errors of the connection are known already; statuses are not.
fn by_status(result: &io::Result<Answer>) -> Option<Fault> {
    match result {
        Err(error) => Some(Fault::of_io(error.kind())),
        Ok(answer) => {
            let fault = Fault::of_http(answer.status)?;
            let wait =
                answer.retry_after.as_deref().and_then(|text| parse_retry_after(text, SystemTime::now()));
            Some(wait.map_or(fault, |wait| fault.after(wait)))
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = serve([500, 503, 200, 404]).await?;
    let inventory = Guard::builder("inventory")
        .attempt_timeout(secs(2))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(10))))
        .breaker(Breaker::consecutive_failures(5))
        .build()?;

    let answer = inventory.classify(by_status).idempotent().call(|_| get(server, "/stock/7")).await?;
    println!("after two failures that nobody saw: {}", answer.status);
    let answer = inventory.classify(by_status).idempotent().call(|_| get(server, "/stock/8")).await?;
    println!("an answer that is no is still an answer: {}", answer.status);

    let nobody = "127.0.0.1:1".parse()?;
    let error = inventory.classify(by_status).call(|_| get(nobody, "/stock/9")).await.unwrap_err();
    println!("nobody there: {error} (ran: {:?})", error.ran());
    print!("{}", inventory.explain());
    Ok(())
}
