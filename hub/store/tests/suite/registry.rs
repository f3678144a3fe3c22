//! Registered things come back as they were put in, by version.

use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::source::Source;

use super::StoreFactory;
use super::fixtures::*;

fn source(version: u64) -> Source {
    Source {
        name: slug("github"),
        version,
        proof: SealedSecret(vec![1, 2, 3]),
        event_type: "github.{{ headers['x-github-event'] }}".into(),
        event_id: None,
        enabled: true,
        changed: NOW,
    }
}

fn key(hash: u8) -> Key {
    Key {
        name: slug("ci"),
        hash: [hash; 32],
        former: Some(([1; 32], NOW)),
        scopes: [Scope::Ingest, Scope::Read].into_iter().collect(),
        services: Some(vec![slug("billing")]),
        sources: Some(vec!["shop \"7\"".into()]),
        made: NOW,
        expires: Some(NOW),
        revoked: None,
    }
}

fn circuit(trips: u32) -> Circuit {
    Circuit {
        service: slug("billing"),
        state: CircuitState::Open,
        until: Some(NOW),
        trips,
        reason: Some("an outage".into()),
        changed: NOW,
    }
}

/// HUB-1, HUB-4, HUB-7: services and rules come back as they were put in; versions go up one by one, and a stale one is refused.
pub(crate) async fn hub_1_services_and_rules_are_kept_by_version<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let put = |change| store.commit(WritePriority::Admin, unit([change]));
    put(Change::PutService(service("billing", 1))).await.unwrap();
    put(Change::PutService(service("billing", 2))).await.unwrap();
    let stale = StoreError::Stale { found: Some(2) };
    assert_eq!(put(Change::PutService(service("billing", 2))).await, Err(stale.clone()));
    assert_eq!(put(Change::PutService(service("billing", 4))).await, Err(stale));
    assert_eq!(put(Change::PutService(service("other", 2))).await, Err(StoreError::Stale { found: None }));
    put(Change::PutRule(rule("invoices", 1))).await.unwrap();
    let ordered = Rule {
        ordering: Some(OrderingRule { key: "{{ data.c }}".into(), hold: true }),
        ..rule("invoices", 2)
    };
    put(Change::PutRule(ordered.clone())).await.unwrap();
    put(Change::PutSource(source(1))).await.unwrap();
    put(Change::PutSource(source(2))).await.unwrap();
    put(Change::PutKey(key(7))).await.unwrap();
    put(Change::PutKey(key(9))).await.unwrap();
    let moved = |circuit| Change::PutCircuit { circuit, cause: CircuitCause::Breaker };
    for trips in 1..300 {
        let closed = Circuit { state: CircuitState::Closed, ..circuit(trips) };
        put(moved(closed)).await.unwrap();
        put(moved(circuit(trips))).await.unwrap();
    }
    // An outage that goes on is one line, with its last end.
    put(moved(circuit(299))).await.unwrap();
    let all = RegistrySnapshot {
        services: vec![service("billing", 2)],
        rules: vec![ordered.clone()],
        sources: vec![source(2)],
        circuits: vec![circuit(299)],
        keys: vec![key(9)],
        alert_rules: Vec::new(),
        channels: Vec::new(),
    };
    assert_eq!(store.registered().await.unwrap(), all);
    assert_eq!(store.rule_versions(&slug("invoices")).await.unwrap(), [ordered, rule("invoices", 1)]);
    let history = store.circuit_history(&slug("billing"), 1_000).await.unwrap();
    assert_eq!((history.len(), &history[0]), (200, &circuit(299)), "bounded, the newest first");

    let gone = Err(StoreError::Stale { found: None });
    assert_eq!(put(Change::DeleteRule(slug("invoices"), 1)).await, gone, "that is not its version");
    put(Change::DeleteRule(slug("invoices"), 2)).await.unwrap();
    assert_eq!(put(Change::DeleteRule(slug("invoices"), 2)).await, gone);
    assert_eq!(
        put(Change::PutRule(rule("invoices", 1))).await,
        Err(StoreError::Stale { found: Some(2) }),
        "a version never means two things"
    );
    put(Change::PutRule(rule("invoices", 3))).await.unwrap();
    put(Change::DeleteSource(slug("github"), 2)).await.unwrap();
    put(Change::DeleteService(slug("billing"), 2)).await.unwrap();
    let left = store.registered().await.unwrap();
    assert!(left.services.is_empty() && left.sources.is_empty());
    assert_eq!(left.rules, [rule("invoices", 3)]);
}
