//! A configuration at work: changed while guards run.

#![expect(clippy::disallowed_methods, reason = "tests start tasks and look at paused time")]

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
    registry.apply(&yaml("guards: {payments: {breaker: {consecutive_failures: 2, cooldown: 1h}}}")).unwrap();
    let payments = registry.guard("payments").unwrap();
    for _ in 0..2 {
        let failed = payments.call(|_| async { Err::<(), _>(std::io::Error::other("down")) }).await;
        assert_eq!(failed.unwrap_err().last_fault(), Fault::of_io(std::io::ErrorKind::Other));
    }
    assert_eq!(payments.breaker().unwrap().state(), State::Open);

    let newer =
        "guards: {payments: {breaker: {consecutive_failures: 9, cooldown: 2h}, retry: {}}, search: {}}";
    registry.apply(&yaml(newer)).unwrap();
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
    registry.apply(&yaml("guards: {shops: {keys_max: 10, breaker: {}}, mail: {}}")).unwrap();
    let shops = registry.keyed("shops").unwrap();
    let shop = shops.guard("7");
    registry.apply(&yaml("guards: {shops: {keys_max: 20, bulkhead: {}}, mail: {keys_max: 5}}")).unwrap();
    assert!(shop.explain().contains("20 calls at once") && shop.breaker().is_none());
    assert_eq!(registry.names(), ["mail", "of code", "shops"]);
    assert!(
        registry.keyed("mail").is_some() && registry.guard("mail").is_none(),
        "one guard became a family"
    );
}

/// ENG-12: what changed is told, setting by setting; what only the file before had is forgotten.
#[test]
fn eng_12_what_changed_is_told() {
    let registry = Registry::new();
    registry.register(seawall::Guard::builder("of code")).unwrap();
    let changes = registry.apply(&yaml("guards: {mail: {retry: {}}, payments: {breaker: {}}}")).unwrap();
    assert_eq!(changes.to_string(), "+ mail\n+ payments");
    let changes =
        registry.apply(&yaml("guards: {payments: {breaker: {cooldown: 60s}, bulkhead: {}}, search: {}}"));
    assert_eq!(
        changes.unwrap().to_string(),
        "+ search\n- mail\npayments.breaker.cooldown: 30s → 60s\npayments.bulkhead.max_calls: nothing → 20\n\
         payments.bulkhead.max_wait: nothing → 0s"
    );
    assert_eq!(registry.names(), ["of code", "payments", "search"]);
    let again =
        registry.apply(&yaml("guards: {payments: {breaker: {cooldown: 60s}, bulkhead: {}}, search: {}}"));
    assert!(again.unwrap().is_empty());
}

/// ENG-12: `registerHealthIndicator` and `health` list a guard under health, with its circuit.
#[test]
fn eng_12_health_lists_what_the_file_says() {
    let registry = Registry::new();
    let file = "
        guards:
          payments: {health: true, breaker: {}}
          shops: {health: true, keys_max: 10, breaker: {}}
          mail: {health: true}
          search: {breaker: {}}";
    registry.apply(&yaml(file)).unwrap();
    registry.guard("search").unwrap().breaker().unwrap().force_open("not listed");
    registry.keyed("shops").unwrap().guard("1").breaker().unwrap().force_open("down");
    let _closed = registry.keyed("shops").unwrap().guard("2");
    let health: Vec<_> =
        registry.health().into_iter().map(|one| (one.is_up(), one.name, one.circuit)).collect();
    let expected = [
        (true, "payments".to_owned(), Some(State::Closed)),
        (false, "shops".to_owned(), Some(State::ForcedOpen)),
        (true, "mail".to_owned(), None),
    ];
    assert_eq!(health, expected);
}

/// ENG-13: while one guard becomes a family and a family one guard, there is always something under the name.
#[test]
fn eng_13_a_name_that_stays_is_never_without_a_guard() {
    let registry = Registry::new();
    let both = [yaml("guards: {hosts: {}}"), yaml("guards: {hosts: {keys_max: 10}}")];
    registry.apply(&both[0]).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(registry.names(), ["hosts"]);
            }
        });
        for turn in 0..2_000 {
            registry.apply(&both[turn % 2]).unwrap();
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        looking.join().expect("there was always one");
    });
}

/// ENG-12: a file is followed: a change is applied and told, a broken one is told and changes nothing, and the same again is
/// no news.
#[tokio::test(start_paused = true)]
async fn eng_12_a_file_is_followed() {
    let folder = std::env::temp_dir().join(format!("seawall-follow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("seawall.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("guards: {payments: {breaker: {cooldown: 10s}}}");
    let registry = Registry::new();
    let (news, mut heard) = tokio::sync::mpsc::channel(10);
    let following = tokio::spawn({
        let (registry, loader) = (registry.clone(), Config::loader().file(&file));
        async move {
            let told = |news_| news.try_send(news_).unwrap();
            registry.follow(loader, seawall::secs(5), told).await.map(drop)
        }
    });
    assert_eq!(heard.recv().await.unwrap().unwrap().added, ["payments"]);
    let payments = registry.guard("payments").unwrap();
    payments.breaker().unwrap().force_open("stays so");

    write("guards: {payments: {breaker: {cooldown: 20}}}");
    let error = heard.recv().await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("seawall.yaml:1:41: guards.payments.breaker.cooldown: a duration needs a unit"),
        "{error}"
    );
    assert!(payments.explain().contains("for 10s"));

    // The same with a comment, and then something new.
    write("guards: {payments: {breaker: {cooldown: 10s}}} # as it was");
    tokio::time::sleep(seawall::secs(11)).await;
    write("guards: {payments: {breaker: {cooldown: 20s}}}");
    let changes = heard.recv().await.unwrap().unwrap();
    assert_eq!(changes.to_string(), "payments.breaker.cooldown: 10s → 20s");
    assert_eq!(payments.breaker().unwrap().state(), State::ForcedOpen);

    // Written in place, and looked at when it was just emptied.
    write("");
    assert!(heard.recv().await.unwrap().unwrap_err().to_string().contains("there is none any more"));
    write("guards: {payments: {breaker: {cooldown: 30s}}}");
    assert_eq!(heard.recv().await.unwrap().unwrap().to_string(), "payments.breaker.cooldown: 20s → 30s");
    assert!(payments.explain().contains("for 30s"), "it is the same guard");

    std::fs::remove_file(&file).unwrap();
    assert!(heard.recv().await.unwrap().unwrap_err().to_string().contains("seawall.yaml"));
    following.abort();
    std::fs::remove_dir_all(folder).unwrap();
    let hasty = registry.follow(Config::loader(), seawall::millis(1), |_| {}).await;
    assert_eq!(hasty.unwrap_err().problems()[0].path(), "every");
}
