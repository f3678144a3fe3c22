//! A configuration at work: changed while guards run.

use seawall::breaker::State;
use seawall::config::{Config, Format};
use seawall::{Fault, Registry};

fn yaml(text: &str) -> Config {
    Config::parse("seawall.yaml", text, Format::Yaml).map_err(|error| error.to_string()).unwrap()
}

/// ENG-12: changes apply live without losing breaker state.
#[tokio::test]
async fn eng_12_a_newer_file_changes_guards_and_keeps_their_circuits() {
    let registry = Registry::new();
    yaml("guards: {payments: {breaker: {consecutive_failures: 2, cooldown: 1h}}}").apply(&registry).unwrap();
    let payments = registry.guard("payments").unwrap();
    for _ in 0..2 {
        let failed = payments.call(|_| async { Err::<(), _>(std::io::Error::other("down")) }).await;
        assert_eq!(failed.unwrap_err().last_fault(), Fault::of_io(std::io::ErrorKind::Other));
    }
    assert_eq!(payments.breaker().unwrap().state(), State::Open);

    let newer =
        "guards: {payments: {breaker: {consecutive_failures: 9, cooldown: 2h}, retry: {}}, search: {}}";
    yaml(newer).apply(&registry).unwrap();
    assert_eq!(registry.names(), ["payments", "search"]);
    assert_eq!(payments.breaker().unwrap().state(), State::Open, "it has not forgotten");
    assert!(
        payments.explain().contains("opens after 9 failures in a row, for 7200s"),
        "{}",
        payments.explain()
    );
    assert!(payments.explain().contains("3 attempts"));
}

/// ENG-12: guards that were made in code stay, and families are families.
#[test]
fn eng_12_what_is_not_in_the_file_is_left_alone() {
    let registry = Registry::new();
    registry.register(seawall::Guard::builder("of code")).unwrap();
    yaml("guards: {shops: {keys_max: 10, breaker: {}}, mail: {}}").apply(&registry).unwrap();
    let shops = registry.keyed("shops").unwrap();
    let shop = shops.guard("7");
    yaml("guards: {shops: {keys_max: 20, bulkhead: {}}, mail: {keys_max: 5}}").apply(&registry).unwrap();
    assert!(shop.explain().contains("20 calls at once") && shop.breaker().is_none());
    assert_eq!(registry.names(), ["mail", "of code", "shops"]);
    assert!(
        registry.keyed("mail").is_some() && registry.guard("mail").is_none(),
        "one guard became a family"
    );
}
