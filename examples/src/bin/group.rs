//! A few things at once: the first failure comes back, panics are caught and told. `gogroup` of those who know it from Go.

use std::time::Duration;

use seawall::task::{Group, GroupError, TaskError, keep_backtraces};

async fn process(item: u32) -> Result<(), std::io::Error> {
    tokio::time::sleep(Duration::from_millis(item.into())).await;
    match item {
        2 => Err(std::io::Error::other("item 2 is sold out")),
        3 => panic!("item 3 has no price"),
        _ => Ok(()),
    }
}

async fn process_concurrently(items: &[u32]) -> Result<(), GroupError<std::io::Error>> {
    // Here you would tell Sentry or whoever is on call.
    let mut group = Group::new().on_panic(|task, panic| {
        let known = panic.location().is_some() && panic.backtrace().is_some();
        println!("told: {task} panicked, {} (place and backtrace known: {known})", panic.message());
    });
    for &item in items {
        group.spawn(format!("item {item}"), process(item));
    }
    group.wait().await
}

#[tokio::main]
async fn main() {
    // The panic hook belongs to the program, so the program says whether backtraces are kept.
    keep_backtraces();

    println!("all well: {:?}", process_concurrently(&[1, 4]).await.is_ok());
    let error = process_concurrently(&[1, 2, 3]).await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    println!("first failure: {error}: {cause}");

    // Not all have to run to their end, and what they give back comes in the order in which they were started.
    let mut group = Group::new().cancel_on_error();
    group.spawn("slow", async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok(1)
    });
    group.spawn("broken", async { Err("no connection") });
    for (name, result) in group.results().await {
        match result {
            Ok(value) => println!("{name}: {value}"),
            Err(TaskError::Failed(error)) => println!("{name}: failed, {error}"),
            Err(other) => println!("{name}: {other}"),
        }
    }
}
