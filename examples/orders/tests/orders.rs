//! The service under faults.

#![cfg(unix)]

mod drive;

use serde_json::json;

use drive::{Behaviour, CONFIG, World, until};

const ORDERS: &str = env!("CARGO_BIN_EXE_orders");

core_tests!(ORDERS;
    reads_survive_the_death_of_the_primary_region,
    a_503_of_the_primary_region_is_answered_by_the_second_and_a_404_is_not,
    a_stale_price_is_served_as_stale_while_both_regions_are_down,
    prices_stay_fresh_for_as_long_as_one_region_lives,
    a_hanging_region_is_hedged,
    a_payment_under_resets_is_charged_exactly_once,
    a_hundred_requests_for_one_product_load_it_once,
);

/// ENG-16: handles that were taken at the start follow the file, and what the breakers know stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_file_changes_the_behaviour_and_keeps_the_circuits() {
    let (world, service) = World::start(ORDERS).await;
    world.east.behave(Behaviour::Status(503));
    for _ in 0..6 {
        assert_eq!(service.get("/stock/A-7").await.1["region"], "west");
    }
    world.east.behave(Behaviour::Healthy);
    let asked = world.east.requests().len();

    // One attempt instead of four.
    let fewer = CONFIG.replace("retry: {max_attempts: 4}", "retry: {max_attempts: 1}");
    assert_ne!(fewer, CONFIG);
    service.configure(&fewer);
    until("the change is logged", async || service.logged(&["payments.retry.max_attempts: 4 → 1"])).await;
    world.payments.next([Behaviour::Status(503)]);
    let order = json!({"order": "o-1", "sku": "A-7", "quantity": 1});
    assert_eq!(service.post("/orders", order).await.0, 502);
    assert_eq!(world.payments.requests().len(), 1);
    assert_eq!(service.get("/stock/A-7").await.1["region"], "west", "the circuit is still open");
    let stock = |line: &String| line.starts_with("GET /stock");
    assert_eq!(world.east.requests().iter().filter(|line| stock(line)).count(), asked);

    // A mistake changes nothing, and is told with its place.
    service.configure(&fewer.replace("cooldown: 30s", "cooldown: 30"));
    until("the mistake is logged", async || service.logged(&["breaker.cooldown", "a duration needs a unit"]))
        .await;
    assert_eq!(service.get("/stock/A-7").await.1["region"], "west");

    // The cooldown that is running gets shorter: a probe finds that the region is well again.
    service.configure(&fewer.replace("cooldown: 30s", "cooldown: 10ms"));
    until("the first region answers", async || service.get("/stock/A-7").await.1["region"] == "east").await;
}

/// ENG-16: a region that hangs is overtaken by hedges to the next one. When that has happened often enough its circuit opens, and
/// then nobody waits for it any more. No caller sees anything but a fresh price.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_goes_on_hanging_is_given_up() {
    let (world, service) = World::start(ORDERS).await;
    world.east.behave(Behaviour::Hang);
    until("the circuit opens", async || {
        assert_eq!(service.get("/prices/A-7").await.1["stale"], false);
        service.text("/metrics").await.contains("seawall_circuit_state{guard=\"inventory-east\"} 2")
    })
    .await;
    let asked = world.east.requests().len();
    assert_eq!(service.get("/prices/A-7").await, (200, json!({"cents": 499, "stale": false})));
    assert_eq!(world.east.requests().len(), asked);
}

/// ENG-16: what guards do is visible from outside, under names that do not change.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_circuits_and_retries() {
    let (mut world, service) = World::start(ORDERS).await;
    world.payments.next([Behaviour::Reset, Behaviour::Status(503)]);
    let order = json!({"order": "o-1", "sku": "A-7", "quantity": 1});
    assert_eq!(service.post("/orders", order).await.0, 200);
    world.east.die().await;
    for _ in 0..6 {
        assert_eq!(service.get("/stock/A-7").await.0, 200);
    }
    let metrics = service.text("/metrics").await;
    for line in [
        "seawall_circuit_state{guard=\"inventory-east\"} 2",
        "seawall_circuit_state{guard=\"inventory-west\"} 0",
        "seawall_retries{guard=\"payments\"} 2",
        "seawall_rejections{guard=\"inventory-east\",policy=\"breaker\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
}

/// ENG-16: a line of a guard has the trace id of the request, and what an operation logs stands in the span of its attempt.
#[tokio::test(flavor = "multi_thread")]
async fn log_lines_have_the_trace_id_and_the_attempt() {
    let (world, service) = World::start(ORDERS).await;
    world.catalogue.next([Behaviour::Status(503)]);
    let trace_id = "0af7651916cd43dd8448eb211c80319c";
    assert_eq!(service.get_traced("/products/A-7", trace_id).await.0, 200);
    let retried = ["[catalogue][product] Retry triggered.", trace_id, "key=\"A-7\"", "attempt=2"];
    until("the retry is logged", async || service.logged(&retried)).await;
    let second = ["seawall.attempt{guard=\"catalogue\"", "attempt=2", "asking"];
    until("the second attempt is logged", async || service.logged(&second)).await;
}

/// TSK-4: one result for each order.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_a_result_for_each_order() {
    let (world, service) = World::start(ORDERS).await;
    let order =
        |order: &str, sku: &str, quantity: u32| json!({"order": order, "sku": sku, "quantity": quantity});
    let batch = json!([
        order("o-1", "A-7", 1),
        order("o-2", "unknown", 1),
        order("o-3", "A-7", 9),
        order("o-4", "B-1", 2)
    ]);
    let (status, results) = service.post("/orders/batch", batch).await;
    assert_eq!(status, 200);
    assert_eq!(results[0]["placed"]["cents"], 499);
    assert_eq!(results[1]["failed"]["error"], "no product `unknown`");
    assert_eq!(results[2]["failed"]["error"], "5 of `A-7` left");
    assert_eq!(results[3]["placed"]["cents"], 998);
    assert_eq!(world.payments.charges(), 2);
}

/// TSK-6: a request in progress is answered, a new one is refused, and the process ends well.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_request_in_progress_finish() {
    let (world, mut service) = World::start(ORDERS).await;
    world.payments.behave(Behaviour::Hang);
    let order = json!({"order": "o-1", "sku": "A-7", "quantity": 1});
    let placing = async { service.post("/orders", order).await };
    let stopping = async {
        until("the order is being paid", async || !world.payments.requests().is_empty()).await;
        service.terminate();
        until("nobody accepts connections", async || service.refuses()).await;
        world.payments.behave(Behaviour::Healthy);
    };
    let ((status, placed), ()) = tokio::join!(placing, stopping);
    assert_eq!((status, &placed["receipt"]), (200, &json!("r-1")), "{placed}");
    let (report, code) = service.end();
    assert_eq!(code, Some(0), "{report}");
    assert!(report.starts_with("shutdown: 3 of 3 parts finished in "), "{report}");
}
