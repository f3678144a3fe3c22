use std::time::Duration;

use seawall::millis;
use seawall_dist::saga::{NewSaga, SagaState};
use seawall_testkit::servers::Postgres;
use tokio::task::JoinSet;

use super::bank::{ACCOUNTS, BALANCE, Bank};
use super::takeover::until_none_is_active;

/// CRD-5: the database is killed and restarted, and paused for longer than a lease, while transfers run: every saga ends, and the
/// sum is conserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_transfers_survive_an_outage_of_the_database() {
    const SAGAS: u32 = 30;
    let server = Postgres::start().unwrap();
    let bank = Bank::postgres_on(&server).await;
    let sagas = bank.sagas(bank.store.clone(), Duration::from_secs(1)).build().unwrap();
    let mut tasks = JoinSet::new();
    let mut start = |from: u32| {
        for number in from..from + SAGAS {
            let (sagas, refuse) = (sagas.clone(), if number % 3 == 0 { " refuse" } else { "" });
            let new = NewSaga::new(
                "transfer",
                &format!("t{number}"),
                format!("{} {} 3 slow{refuse}", number % 10, (number + 3) % 10),
            );
            tasks.spawn(async move { sagas.start(new).await });
        }
    };
    start(0);
    tokio::time::sleep(millis(80)).await;
    server.control().kill().unwrap();
    server.control().start().unwrap();
    start(SAGAS);
    tokio::time::sleep(millis(80)).await;
    server.control().pause().unwrap();
    // Nothing can be written: the pause lasts until every transfer has lost its lease.
    let ends = tasks.join_all().await;
    server.control().resume().unwrap();
    let interrupted = ends.iter().filter(|end| end.is_err()).count();
    let monitor = tokio::sync::Notify::new();
    tokio::join!(sagas.run(monitor.notified()), async {
        until_none_is_active(&bank).await;
        monitor.notify_one();
    });
    println!("{} transfers, {interrupted} interrupted by the outages", ends.len());
    assert!(interrupted > 0, "the outages interrupted nothing");
    let balances = bank.balances().await;
    assert_eq!(balances.iter().sum::<i64>(), ACCOUNTS * BALANCE, "{balances:?}");
    let counts = bank.store.count().await.unwrap();
    assert!(counts.iter().all(|(state, _)| *state != SagaState::NeedsAttention), "{counts:?}");
}
