use seawall::secs;
use seawall_dist::saga::{CreateOutcome, DefinitionId, DueSagas, SagaRow};

use super::bank::Bank;

fn row(id: &str) -> SagaRow {
    SagaRow {
        id: id.into(),
        definition: DefinitionId { name: "transfer".into(), version: 1 },
        entity: None,
        input: Vec::new(),
        timeout: secs(60),
        owner: "me".into(),
        lease: secs(0),
    }
}

/// CRD-5: a saga that this version can't read keeps no other from being taken over, and is left to somebody who can.
async fn one_bad_saga_blocks_nobody(bank: Bank) {
    for id in ["a", "b", "c"] {
        assert!(matches!(bank.store.create(&row(id)).await.unwrap(), CreateOutcome::Created(_)));
    }
    // What a later version writes.
    let script = "UPDATE seawall_sagas SET version = 1 WHERE id = 'b'; \
        INSERT INTO seawall_saga_journal (saga_id, seq, kind, step, attempt, payload, at) \
        SELECT id, 1, 'of_a_later_version', '', 1, '', created_at FROM seawall_sagas WHERE id = 'b'";
    bank.execute(script).await;
    let due = DueSagas {
        owner: "you".into(),
        lease: secs(600),
        known: vec![DefinitionId { name: "transfer".into(), version: 1 }],
        limit: 10,
    };
    let claimed = bank.store.claim_due(&due).await.unwrap();
    let mut ids: Vec<&str> = claimed.iter().map(|record| record.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "c"]);
    bank.execute("DELETE FROM seawall_saga_journal").await;
    let claimed = bank.store.claim_due(&due).await.unwrap();
    assert_eq!(claimed.len(), 1, "its lease was not given back");
}

#[tokio::test]
async fn crd_5_one_bad_saga_blocks_nobody_on_postgres() {
    one_bad_saga_blocks_nobody(Bank::postgres().await).await;
}

#[tokio::test]
async fn crd_5_one_bad_saga_blocks_nobody_on_sqlite() {
    one_bad_saga_blocks_nobody(Bank::sqlite().await).await;
}
