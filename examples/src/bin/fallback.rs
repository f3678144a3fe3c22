//! Falls back to the last good value, keeps what was given up for later, and listens to what the guard tells of it.

use std::cell::RefCell;
use std::io;

use seawall::fallback::LastGood;
use seawall::{Backoff, Error, Guard, Retry, millis};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rates = Guard::builder("rates")
        .retry(Retry::max_attempts(2).backoff(Backoff::constant(millis(1))))
        .build()?;
    let mut events = rates.subscribe(100);
    let last = LastGood::new();
    let fetch =
        async |up: bool| if up { Ok(1.08) } else { Err(io::Error::from(io::ErrorKind::ConnectionReset)) };

    let fresh = rates.idempotent().or_last_good(&last).call(|_| fetch(true)).await?;
    println!("fresh: {} (fallback: {})", *fresh, fresh.is_fallback());
    let stale = rates.idempotent().or_last_good(&last).call(|_| fetch(false)).await?;
    println!("stale: {} (fallback: {})", *stale, stale.is_fallback());

    let kept = RefCell::new(Vec::new());
    let keep = |error: &Error<io::Error>| kept.borrow_mut().push(error.to_string());
    let answer = rates.idempotent().or_value(1.0).dead_letter(keep).call(|_| fetch(false)).await?;
    println!("default: {}, kept for later: {:?}", *answer, kept.borrow());
    while let Some(event) = events.try_next() {
        println!("event: {event}");
    }
    Ok(())
}
