//! The same faults as those of `../orders`, as far as this version has what they need.

#![cfg(unix)]

#[path = "../../orders/tests/drive/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what only the other version needs")]
mod drive;

const ORDERS: &str = env!("CARGO_BIN_EXE_orders-peers");

core_tests!(ORDERS;
    reads_survive_the_death_of_the_primary_region,
    a_503_of_the_primary_region_is_answered_by_the_second_and_a_404_is_not,
    a_stale_price_is_served_as_stale_while_both_regions_are_down,
    prices_stay_fresh_for_as_long_as_one_region_lives,
    a_hanging_region_is_hedged,
    a_payment_under_resets_is_charged_exactly_once,
    a_hundred_requests_for_one_product_load_it_once,
);
