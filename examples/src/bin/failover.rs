//! Reads from a secondary while the primary is down, and finds out when it is back.

use std::cell::Cell;
use std::io;

use seawall::failover::{Failover, Side};
use seawall::{Breaker, Guard, millis};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let primary_is_up = Cell::new(false);
    let primary_asked = Cell::new(0);
    let orders = Failover::new(
        Guard::builder("orders-primary")
            .no_retry()
            .breaker(Breaker::consecutive_failures(2).cooldown(millis(50)))
            .build()?,
        Guard::builder("orders-secondary").no_retry().build()?,
    )?;
    let query = |side: Side, _| {
        primary_asked.set(primary_asked.get() + u32::from(side == Side::Primary));
        let fails = side == Side::Primary && !primary_is_up.get();
        async move { if fails { Err(io::Error::from(io::ErrorKind::ConnectionRefused)) } else { Ok("rows") } }
    };
    for _ in 0..10 {
        assert_eq!(orders.idempotent(query).await?.by, Side::Secondary);
    }
    println!("ten reads by the secondary, the primary was asked {} times", primary_asked.get());
    primary_is_up.set(true);
    tokio::time::sleep(millis(60)).await;
    println!("back at the {}", orders.idempotent(query).await?.by);
    Ok(())
}
