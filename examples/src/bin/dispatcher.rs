//! A batch of orders with five workers, and the same as a stream: `NewProcess….Run` and `….Do` of those who know it from Go.

use seawall::task::{Dispatcher, TaskError};

struct OrderRepository;

impl OrderRepository {
    async fn get(&self, order: &str) -> Result<u32, String> {
        tokio::task::yield_now().await;
        match order {
            "o-13" => Err("no such order".to_owned()),
            "o-66" => panic!("the order has no lines"),
            _ => Ok(order.trim_start_matches("o-").parse::<u32>().unwrap_or(0) * 10),
        }
    }
}

#[tokio::main]
async fn main() {
    let repository = OrderRepository;
    let orders = ["o-1", "o-13", "o-2", "o-66", "o-3"];

    // Run: all results, in the order of the items. The handler may borrow.
    let process = async |order| repository.get(order).await;
    let results = Dispatcher::new(process)
        .workers(5)
        .progress(|done, total| println!("{done} of {}", total.unwrap_or(done)))
        .run(orders)
        .await;
    for (order, result) in orders.iter().zip(&results) {
        match result {
            Ok(total) => println!("{order}: processed, {total}"),
            Err(TaskError::Failed(error)) => println!("{order}: failed, {error}"),
            Err(other) => println!("{order}: {other}"),
        }
    }

    // Do: results while the rest is under way. The input is read as fast as results are taken, so it may be endless.
    let mut stream =
        Dispatcher::new(async |number: u64| Ok::<_, String>(number * number)).workers(2).stream(1..);
    let mut sum = 0;
    while let Some(done) = stream.next().await {
        sum += done.result.unwrap_or(0);
        if done.index == 99 {
            break;
        }
    }
    println!("the first hundred squares come to {sum}");
    drop(stream); // Whatever was under way is cancelled.

    // Orders of one customer one after another, those of different customers at the same time.
    let book =
        async |(customer, amount): (&'static str, u32)| Ok::<_, String>(format!("{customer} {amount}"));
    let bookings = [("ada", 1), ("bob", 1), ("ada", 2), ("bob", 2), ("ada", 3)];
    let mut booked = Dispatcher::new(book).workers(4).by_key(|(customer, _)| *customer).stream(bookings);
    let mut ada = Vec::new();
    while let Some(done) = booked.next().await {
        ada.extend(done.result.ok().filter(|line| line.starts_with("ada")));
    }
    println!("in order: {}", ada.join(", "));
}
