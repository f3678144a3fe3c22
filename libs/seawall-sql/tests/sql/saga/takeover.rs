use std::time::Duration;

use seawall::{Backoff, millis};
use seawall_dist::saga::{NewSaga, Saga, SagaFilter, SagaState, SagaStep, StepContext};
use seawall_testkit::servers::{WorkerProcess, worker_settings};
use tokio::runtime::Runtime;

use super::bank::{ACCOUNTS, BALANCE, Bank, BankError};

/// Long enough that a live process on a busy machine renews in time.
const LEASE: Duration = Duration::from_secs(3);
const PERIOD: Duration = Duration::from_secs(1);

/// Waits until every saga has ended.
pub(super) async fn until_none_is_active(bank: &Bank) {
    for _ in 0..1_200 {
        let counts = bank.store.count().await.unwrap();
        if !counts.iter().any(|(state, count)| state.is_active() && *count > 0) {
            return;
        }
        tokio::time::sleep(millis(50)).await;
    }
    let filter = SagaFilter { state: Some(SagaState::Running), unclaimed_for: None, after: None, limit: 10 };
    panic!("sagas did not end within a minute: {:?}", bank.store.list(&filter).await);
}

/// A saga whose step records who works at it, and hangs in the process whose name is `victim`.
fn recorded(bank: &Bank, owner: &str) -> Saga {
    let (bank, owner) = (bank.clone(), owner.to_owned());
    let step = SagaStep::new("record", move |context: StepContext| {
        let (bank, owner) = (bank.clone(), owner.clone());
        async move {
            bank.record(&context.key, &owner).await?;
            if owner == "victim" {
                std::future::pending::<()>().await;
            }
            Ok::<_, BankError>(())
        }
    });
    Saga::builder("recorded", 1).step(step).build().unwrap()
}

/// Runs a monitor; `victim` takes sagas and hangs in them.
#[test]
fn takeover_worker() {
    let Some(settings) = worker_settings() else { return };
    Runtime::new().unwrap().block_on(async {
        let (bank, owner) = (Bank::open(&settings["DATABASE"]).await, settings["OWNER"].as_str());
        let sagas = bank.sagas(bank.store.clone(), LEASE).register(recorded(&bank, owner)).owner(owner);
        let sagas = sagas.monitor_period(PERIOD).monitor_concurrency(100).build().unwrap();
        sagas.run(std::future::pending()).await;
    });
}

fn worker(bank: &Bank, owner: &str) -> WorkerProcess {
    let settings = [("DATABASE", bank.address.as_str()), ("OWNER", owner)];
    WorkerProcess::spawn("saga::takeover::takeover_worker", &settings).unwrap()
}

/// CRD-5: the monitor takes over within a lease and its period, and only one of three processes does.
async fn takes_over_in_time(bank: Bank) {
    const SAGAS: usize = 30;
    let sagas = bank.sagas(bank.store.clone(), LEASE).register(recorded(&bank, "nobody")).build().unwrap();
    for number in 0..SAGAS {
        sagas.submit(NewSaga::new("recorded", &format!("s{number}"), "")).await.unwrap();
    }
    let mut victim = worker(&bank, "victim");
    while bank.records().await.len() < SAGAS {
        tokio::time::sleep(millis(20)).await;
    }
    let _monitors: Vec<WorkerProcess> =
        ["one", "two", "three"].iter().map(|owner| worker(&bank, owner)).collect();
    // The victim is alive: nobody takes its sagas, however long they last.
    tokio::time::sleep(LEASE * 2).await;
    let records = bank.records().await;
    assert!(records.iter().all(|(_, owner, _)| owner == "victim"), "a saga was taken from a live process");
    victim.kill().unwrap();
    bank.record("killed", "test").await.unwrap();
    until_none_is_active(&bank).await;
    let records = bank.records().await;
    let (_, _, killed) = records.iter().find(|(key, ..)| key == "killed").unwrap();
    let taken: Vec<_> =
        records.iter().filter(|(_, owner, _)| ["one", "two", "three"].contains(&owner.as_str())).collect();
    assert_eq!(taken.len(), SAGAS, "a saga was taken over more than once, or not at all");
    let latest = taken.iter().map(|(_, _, at)| at - killed).fold(0.0, f64::max);
    println!("{SAGAS} sagas taken over within {latest:.2} s of the kill; lease {LEASE:?}, period {PERIOD:?}");
    // A quiet machine needs no more than a lease and a period; a busy one has room.
    let bound = (LEASE + PERIOD * 5).as_secs_f64();
    assert!(latest <= bound, "the last saga was taken over after {latest:.2} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_one_of_three_monitors_takes_over_in_time_on_postgres() {
    takes_over_in_time(Bank::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_one_of_three_monitors_takes_over_in_time_on_sqlite() {
    takes_over_in_time(Bank::sqlite().await).await;
}

/// CRD-5: transfers go on while monitors are killed again and again; the sum is conserved and every saga ends.
async fn survives_kills_of_monitors(bank: Bank, transfers: u32, kills: u32) {
    let sagas = bank.sagas(bank.store.clone(), LEASE).build().unwrap();
    let mut monitors: Vec<WorkerProcess> = (0..3).map(|_| worker(&bank, "monitor")).collect();
    let pause = Backoff::constant(millis(900));
    for kill in 0..kills {
        // There is work to interrupt at every kill.
        for number in kill * transfers / kills..(kill + 1) * transfers / kills {
            let refuse = if number % 3 == 0 { " refuse" } else { "" };
            let input = format!("{} {} 3 slow{refuse}", number % 10, (number + 3) % 10);
            sagas.submit(NewSaga::new("transfer", &format!("t{number}"), input)).await.unwrap();
        }
        let random = u64::from(kill).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        tokio::time::sleep(pause.wait(0, Duration::ZERO, false, random)).await;
        let index = (kill % 3) as usize;
        monitors[index].kill().unwrap();
        monitors[index] = worker(&bank, "monitor");
    }
    until_none_is_active(&bank).await;
    let counts = bank.store.count().await.unwrap();
    let filter = SagaFilter { state: None, unclaimed_for: None, after: None, limit: u32::MAX };
    let all = bank.store.list(&filter).await.unwrap();
    // The first claim is that of the monitor which began; more of them took over.
    let interrupted = all.iter().filter(|saga| saga.lease.fence > 1).count();
    println!("{transfers} transfers, {kills} kills, {interrupted} taken over: {counts:?}");
    assert!(interrupted > 0, "no kill interrupted a saga");
    let balances = bank.balances().await;
    assert_eq!(balances.iter().sum::<i64>(), ACCOUNTS * BALANCE, "{balances:?}");
    let ended = all.iter().filter(|saga| !saga.state.is_active()).count();
    assert_eq!(ended, transfers as usize);
}

fn is_long() -> bool {
    std::env::var_os("SEAWALL_LONG").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_transfers_survive_kills_of_monitors_on_postgres() {
    let (transfers, kills) = if is_long() { (3_000, 60) } else { (150, 6) };
    survives_kills_of_monitors(Bank::postgres().await, transfers, kills).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_transfers_survive_kills_of_monitors_on_sqlite() {
    let (transfers, kills) = if is_long() { (1_500, 60) } else { (100, 6) };
    survives_kills_of_monitors(Bank::sqlite().await, transfers, kills).await;
}
