//! Asks a second replica when the first takes longer than it should.

use seawall::{Attempt, Guard, Hedge, millis, secs};
use std::cell::Cell;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let search = Guard::builder("search").hedge(Hedge::after(millis(20))).build()?;
    let asked = Cell::new(0);
    let ask = async |_: Attempt| {
        asked.set(asked.get() + 1);
        let replica = asked.get();
        // The first replica is in the middle of a pause.
        tokio::time::sleep(if replica == 1 { secs(60) } else { millis(1) }).await;
        std::io::Result::Ok(format!("replica {replica}"))
    };
    let answer = search.idempotent().hedged().call(ask).await?;
    let hedger = search.hedger().expect("it was asked for");
    println!("answered by {answer}; second attempts: {}, of which won: {}", hedger.started(), hedger.won());
    Ok(())
}
