//! Reads from a secondary while the primary is down, and finds out when it is back. In tasks of their own, on several threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use seawall::failover::{Failover, Side};
use seawall::{Attempt, Breaker, Guard, millis};

/// Two databases, of which the first may be down.
#[derive(Default)]
struct Databases {
    primary_is_up: AtomicBool,
    primary_asked: AtomicU32,
}

impl Databases {
    async fn query(&self, side: Side) -> io::Result<&'static str> {
        if side != Side::PRIMARY {
            return Ok("rows");
        }
        self.primary_asked.fetch_add(1, Ordering::Relaxed);
        if self.primary_is_up.load(Ordering::Relaxed) {
            Ok("rows")
        } else {
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let breaker = Breaker::consecutive_failures(2).cooldown(millis(50));
    let orders = Failover::new(
        Guard::builder("orders-primary").breaker(breaker).build()?,
        Guard::builder("orders-secondary").build()?,
    )?;
    let databases = Arc::new(Databases::default());
    let read = || {
        let (orders, databases) = (orders.clone(), databases.clone());
        tokio::spawn(async move {
            let query = |attempt: Attempt| databases.query(attempt.side());
            orders.idempotent().call(query).await.map(|answer| answer.side())
        })
    };
    for _ in 0..10 {
        assert_eq!(read().await??, Side::SECONDARY);
    }
    let asked = databases.primary_asked.load(Ordering::Relaxed);
    println!("ten reads by the secondary, the primary was asked {asked} times");
    databases.primary_is_up.store(true, Ordering::Relaxed);
    tokio::time::sleep(millis(60)).await;
    println!("back at the {}", read().await??);
    Ok(())
}
