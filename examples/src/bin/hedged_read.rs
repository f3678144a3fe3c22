//! Asks a second replica when the first takes longer than it should, in a task of its own.

use seawall::{Attempt, Guard, Hedge, millis, secs};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let search = Guard::builder("search").hedge(Hedge::after(millis(20))).build()?;
    let ask = async |attempt: Attempt| {
        // The first replica is in the middle of a pause.
        tokio::time::sleep(if attempt.hedge() == 0 { secs(60) } else { millis(1) }).await;
        std::io::Result::Ok(format!("replica {}", attempt.hedge() + 1))
    };
    let guard = search.clone();
    let answer = tokio::spawn(async move { guard.idempotent().hedged().call(ask).await }).await??;
    let hedger = search.hedger().expect("it was asked for");
    println!("answered by {answer}; second attempts: {}, of which won: {}", hedger.started(), hedger.won());
    Ok(())
}
