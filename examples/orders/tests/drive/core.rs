//! What both versions of the service must do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Behaviour, World, until};

/// Makes a test of each, for one version.
#[macro_export]
macro_rules! core_tests {
    ($binary:expr; $($name:ident),+ $(,)?) => {
        $(
            #[doc = concat!("ENG-16: ", stringify!($name))]
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                drive::core::$name($binary).await;
            }
        )+
    };
}

/// A dead primary is noticed, and after a few failures not even asked.
pub async fn reads_survive_the_death_of_the_primary_region(binary: &str) {
    let (mut world, service) = World::start(binary).await;
    assert_eq!(service.get("/stock/A-7").await, (200, json!({"stock": 5, "region": "east"})));
    world.east.die().await;
    for _ in 0..20 {
        assert_eq!(service.get("/stock/A-7").await, (200, json!({"stock": 5, "region": "west"})));
    }
    assert_eq!(world.west.requests().len(), 20, "the second region was asked once for each");
}

/// A primary that answers 503 is as good as dead; one that says 404 has answered.
pub async fn a_503_of_the_primary_region_is_answered_by_the_second_and_a_404_is_not(binary: &str) {
    let (world, service) = World::start(binary).await;
    assert_eq!(service.get("/stock/unknown").await.0, 404);
    assert!(world.west.requests().is_empty(), "the first region has answered");

    world.east.behave(Behaviour::Status(503));
    for _ in 0..20 {
        assert_eq!(service.get("/stock/A-7").await.1["region"], "west");
    }
    let asked = world.east.requests().len() - 1;
    assert_eq!(asked, 5, "five failures open the circuit");
}

pub async fn a_stale_price_is_served_as_stale_while_both_regions_are_down(binary: &str) {
    let (mut world, service) = World::start(binary).await;
    assert_eq!(service.get("/prices/A-7").await, (200, json!({"cents": 499, "stale": false})));
    world.east.die().await;
    world.west.die().await;
    for _ in 0..5 {
        assert_eq!(service.get("/prices/A-7").await, (200, json!({"cents": 499, "stale": true})));
    }
    let (status, _) = service.get("/prices/B-1").await;
    assert!((502..=504).contains(&status), "of this product no price was ever known: {status}");
}

/// No budget of retries is needed for it.
pub async fn prices_stay_fresh_for_as_long_as_one_region_lives(binary: &str) {
    let (mut world, service) = World::start(binary).await;
    world.east.die().await;
    for _ in 0..100 {
        assert_eq!(service.get("/prices/A-7").await, (200, json!({"cents": 499, "stale": false})));
    }
}

/// The attempt timeout is 1 s. An answer comes long before.
pub async fn a_hanging_region_is_hedged(binary: &str) {
    let (world, service) = World::start(binary).await;
    world.east.behave(Behaviour::Hang);
    for _ in 0..3 {
        let began = Instant::now();
        assert_eq!(service.get("/prices/A-7").await, (200, json!({"cents": 499, "stale": false})));
        assert!(began.elapsed() < Duration::from_millis(900), "after {:?}", began.elapsed());
    }
    assert_eq!((world.east.requests().len(), world.west.requests().len()), (3, 3));
}

/// The peer charges and then resets the connection, twice; and the buyer repeats the order.
pub async fn a_payment_under_resets_is_charged_exactly_once(binary: &str) {
    let (world, service) = World::start(binary).await;
    let order = json!({"order": "o-1", "sku": "A-7", "quantity": 2});
    world.payments.next([Behaviour::Reset, Behaviour::Reset, Behaviour::Status(503)]);
    let (status, placed) = service.post("/orders", order.clone()).await;
    assert_eq!((status, &placed["receipt"], &placed["cents"]), (200, &json!("r-1"), &json!(998)), "{placed}");
    assert_eq!((world.payments.requests().len(), world.payments.charges()), (4, 1));

    let (_, again) = service.post("/orders", order).await;
    assert_eq!((again, world.payments.charges()), (placed, 1), "the same order is not charged again");
    let other = json!({"order": "o-2", "sku": "A-7", "quantity": 1});
    assert_eq!(service.post("/orders", other).await.1["receipt"], "r-2");
}

pub async fn a_hundred_requests_for_one_product_load_it_once(binary: &str) {
    let (world, service) = World::start(binary).await;
    let service = Arc::new(service);
    world.catalogue.behave(Behaviour::Hang);
    let ask = |_| {
        let service = service.clone();
        tokio::spawn(async move { service.get("/products/A-7").await })
    };
    let asked: Vec<_> = (0..100).map(ask).collect();
    until("the catalogue is asked", async || !world.catalogue.requests().is_empty()).await;
    world.catalogue.behave(Behaviour::Healthy);
    for answer in asked {
        assert_eq!(answer.await.expect("no panic"), (200, json!({"sku": "A-7", "name": "Product A-7"})));
    }
    assert_eq!(world.catalogue.requests(), ["GET /products/A-7"]);
}
