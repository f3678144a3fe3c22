//! Where the guard comes from.

use std::sync::Once;

use seawall::{Guard, Registry, guarded};

use crate::support::{Flaky, guard};

/// The one registry of this process, with the guard `payments` in it.
fn registry() -> &'static Registry {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let registry = Registry::new();
        registry.register(Guard::builder("payments")).unwrap();
        registry.register_keyed(Guard::builder("shops"), 10).unwrap();
        registry.set_global().unwrap();
    });
    Registry::global().unwrap()
}

#[guarded("payments", idempotent)]
async fn charge(payments: &Flaky) -> Result<u32, seawall::Error<std::io::Error>> {
    payments.fetch().await
}

#[guarded("passing", idempotent)]
fn passing(peer: &Flaky) -> Result<u32, seawall::Error<std::io::Error>> {
    peer.ask()
}

#[guarded("payment")]
fn misspelt() -> Result<u32, seawall::Error<std::io::Error>> {
    Ok(1)
}

#[guarded("shops")]
fn family() -> Result<u32, seawall::Error<std::io::Error>> {
    Ok(1)
}

#[guarded(guard = registry().keyed("shops").unwrap().guard(shop), idempotent)]
fn stock(shop: &str, peer: &Flaky) -> Result<u32, seawall::Error<std::io::Error>> {
    peer.ask()
}

fn panic_text(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(run).unwrap_err().downcast::<String>().unwrap()
}

/// ENG-16: a name is looked up in the registry of the process.
#[tokio::test]
async fn a_name_stands_for_the_guard_of_the_global_registry() {
    let guard = registry().guard("payments").unwrap();
    let mut events = guard.subscribe(8);
    assert_eq!(charge(&Flaky::new(0)).await.unwrap(), 1);
    assert!(events.try_next().is_some(), "the call went through that guard");
}

/// ENG-16: a name that nobody has registered is a bug, and the panic says which names there are.
#[test]
fn an_unknown_name_panics_with_the_names_that_there_are() {
    registry();
    let text = panic_text(|| drop(misspelt()));
    assert!(
        text.starts_with("#[guarded(\"payment\")]: the global registry has no guard `payment`"),
        "{text}"
    );
    assert!(text.contains("payments"), "{text}");
    let text = panic_text(|| drop(family()));
    assert!(text.contains("`shops` is a family of guards; write `guard = family.guard(key)`"), "{text}");
}

/// ENG-16: a reload that drops a guard from the file does not make the function fail.
#[test]
fn a_guard_that_was_removed_goes_on_as_it_was() {
    registry().register(Guard::builder("passing")).unwrap();
    assert_eq!(passing(&Flaky::new(0)).unwrap(), 1);
    assert!(registry().remove("passing"));
    assert_eq!(passing(&Flaky::new(0)).unwrap(), 1);
    let again = registry().register(Guard::builder("passing").no_retry()).unwrap();
    let error = passing(&Flaky::new(1)).unwrap_err();
    assert_eq!(error.attempts(), 1, "the new guard of that name is the one that counts");
    drop(again);
}

/// ENG-16: a second registry is refused.
#[test]
fn a_second_global_registry_is_refused() {
    registry();
    let error = Registry::new().set_global().unwrap_err();
    assert!(error.to_string().contains("Registry::global()"), "{error}");
}

/// ENG-16: any expression that is a guard will do.
#[test]
fn an_expression_may_be_a_guard_a_reference_or_a_member_of_a_family() {
    registry();
    assert_eq!(stock("a", &Flaky::new(0)).unwrap(), 1);

    #[guarded(guard = guard, idempotent)]
    fn by_reference(guard: &Guard, peer: &Flaky) -> Result<u32, seawall::Error<std::io::Error>> {
        peer.ask()
    }
    #[guarded(guard = guard, idempotent)]
    fn in_an_arc(guard: std::sync::Arc<Guard>, peer: &Flaky) -> Result<u32, seawall::Error<std::io::Error>> {
        peer.ask()
    }
    let flaky = guard("flaky");
    assert_eq!(by_reference(&flaky, &Flaky::new(2)).unwrap(), 3);
    assert_eq!(in_an_arc(std::sync::Arc::new(flaky), &Flaky::new(2)).unwrap(), 3);
}
