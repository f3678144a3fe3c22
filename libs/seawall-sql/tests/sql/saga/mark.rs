use std::time::Duration;

use seawall_dist::saga::{CompensationMark, StepMark};
use seawall_sql::{postgres, sqlite};

use super::bank::{BALANCE, Bank, Pool};

/// CRD-5: a step takes effect once, a compensation undoes it once, and a late call is refused; where there is nothing to undo,
/// the compensation leaves a mark that refuses the late call all the same.
async fn a_late_call_is_refused(bank: &Bank) {
    assert_eq!(bank.add("s1:debit", 0, -5).await.unwrap(), StepMark::First);
    assert_eq!(bank.add("s1:debit", 0, -5).await.unwrap(), StepMark::Repeated);
    assert_eq!(bank.balances().await[0], BALANCE - 5);
    assert_eq!(bank.take_back("s1:debit", 0, -5).await.unwrap(), CompensationMark::Undo);
    assert_eq!(bank.take_back("s1:debit", 0, -5).await.unwrap(), CompensationMark::Repeated);
    assert_eq!(bank.add("s1:debit", 0, -5).await.unwrap(), StepMark::Refused);
    assert_eq!(bank.take_back("s2:debit", 0, -5).await.unwrap(), CompensationMark::NothingToUndo);
    assert_eq!(bank.add("s2:debit", 0, -5).await.unwrap(), StepMark::Refused);
    assert_eq!(bank.balances().await[0], BALANCE);
}

#[tokio::test]
async fn crd_5_a_late_call_is_refused_on_sqlite() {
    let bank = Bank::sqlite().await;
    a_late_call_is_refused(&bank).await;
    let Pool::Sqlite(pool) = &bank.pool else { unreachable!() };
    assert_eq!(sqlite::saga::clean_up_marks(pool, Duration::from_secs(60), 10).await.unwrap(), 0);
    assert_eq!(sqlite::saga::clean_up_marks(pool, Duration::ZERO, 1).await.unwrap(), 1);
}

/// On PostgreSQL the compensation also waits for a call that is under way, and then undoes it.
#[tokio::test]
async fn crd_5_a_late_call_is_refused_on_postgres() {
    let bank = Bank::postgres().await;
    a_late_call_is_refused(&bank).await;
    let Pool::Postgres(pool) = &bank.pool else { unreachable!() };
    for commits in [true, false] {
        let key = format!("s3:{commits}");
        let mut slow = pool.begin().await.unwrap();
        assert_eq!(postgres::saga::mark_step(&mut slow, &key).await.unwrap(), StepMark::First);
        let mut compensation = Box::pin(bank.take_back(&key, 0, 0));
        let early = tokio::time::timeout(Duration::from_millis(100), compensation.as_mut()).await;
        assert!(early.is_err(), "the compensation did not wait for the call under way: {early:?}");
        if commits {
            slow.commit().await.unwrap();
        } else {
            slow.rollback().await.unwrap();
        }
        let expected = if commits { CompensationMark::Undo } else { CompensationMark::NothingToUndo };
        assert_eq!(compensation.await.unwrap(), expected);
        assert_eq!(bank.add(&key, 0, 0).await.unwrap(), StepMark::Refused);
    }
    assert_eq!(postgres::saga::clean_up_marks(pool, Duration::from_secs(60), 10).await.unwrap(), 0);
    assert_eq!(postgres::saga::clean_up_marks(pool, Duration::ZERO, 1).await.unwrap(), 1);
}
