//! Alerts as they are kept: rules, channels, incidents, and dead letters counted by age.

use seawall_hub_core::domain::alert::{
    Acknowledgement, AlertRule, Channel, ConditionKind, Incident, Mute, Notice, NoticeKind, NoticeState,
    Severity,
};

use super::StoreFactory;
use super::fixtures::*;

fn incident(id: &str, service: Option<&str>) -> Incident {
    Incident {
        id: id.into(),
        rule: slug("circuit-open"),
        kind: ConditionKind::CircuitOpen,
        severity: Severity::Critical,
        service: service.map(slug),
        opened: NOW,
        updated: NOW,
        resolved: None,
        value: 1.5,
        summary: "it is open".into(),
        acknowledged: None,
        muted: None,
        notified: false,
        notices: Vec::new(),
    }
}

const FIRST: PageRequest = PageRequest { from: None, size: 10 };

/// HUB-12: every kind of rule and a channel are kept as they are, by version, and a channel's secrets can be sealed anew.
pub(crate) async fn hub_12_rules_and_channels_are_kept_by_version<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let put = |change| store.commit(WritePriority::Admin, unit([change]));
    let mut rules = AlertRule::built_in();
    rules.sort_by(|a, b| a.name.cmp(&b.name));
    for rule in &mut rules {
        rule.version = 1;
        rule.muted = Some(Mute { until: Millis(7), reason: "quiet".into() });
        rule.services = Some(vec![slug("billing")]);
        rule.channels = Some(Vec::new());
        rule.holds = Duration::from_millis(1_500);
        put(Change::PutAlertRule(rule.clone())).await.unwrap();
    }
    let stale = put(Change::PutAlertRule(rules[0].clone())).await;
    assert_eq!(stale, Err(StoreError::Stale { found: Some(1) }));
    let channel =
        Channel { name: slug("duty"), version: 1, settings: SealedSecret(vec![1, 2, 3]), changed: Millis(5) };
    put(Change::PutChannel(channel.clone())).await.unwrap();
    let kept = store.registered().await.unwrap();
    assert_eq!((kept.alert_rules, kept.channels), (rules.clone(), vec![channel.clone()]));
    let anew = |was: &[u8], now: &[u8]| {
        let (was, now) = (SealedSecret(was.to_vec()), SealedSecret(now.to_vec()));
        Change::Reseal(SecretRotation { owner: SecretOwner::Channel(slug("duty")), was, now })
    };
    assert_eq!(put(anew(&[9], &[4])).await.unwrap().touched, 0, "it is another one");
    assert_eq!(put(anew(&[1, 2, 3], &[4])).await.unwrap().touched, 1);
    put(Change::DeleteAlertRule(rules[0].name.clone(), 1)).await.unwrap();
    assert_eq!(put(Change::DeleteChannel(slug("duty"), 2)).await, Err(StoreError::Stale { found: None }));
    put(Change::DeleteChannel(slug("duty"), 1)).await.unwrap();
    let left = store.registered().await.unwrap();
    assert_eq!((left.alert_rules, left.channels), (rules[1..].to_vec(), Vec::new()));
}

/// HUB-12: an incident is kept with all that is known of it, over a restart; it is live until it is over and told.
pub(crate) async fn hub_12_an_incident_is_kept_with_who_was_told<F: StoreFactory>() {
    let place = F::create().await;
    let (hook, mail) = (slug("hook"), slug("mail"));
    let mut first = incident("inc_a", Some("billing"));
    {
        let store = place.open().await.unwrap();
        let put = |incident: &Incident| {
            store.commit(WritePriority::Admin, unit([Change::PutIncident(Box::new(incident.clone()))]))
        };
        put(&first).await.unwrap();
        first.tell(&[hook.clone(), mail.clone()], NOW);
        first.settle(&hook, NoticeKind::Opened, Ok(()), NOW);
        first.settle(&mail, NoticeKind::Opened, Err("nobody \"there\"".into()), NOW);
        first.acknowledged = Some(Acknowledgement { who: "me".into(), at: NOW, reason: None });
        first.muted = Some(Mute { until: Millis(9), reason: "quiet".into() });
        put(&first).await.unwrap();
        put(&incident("inc_b", None)).await.unwrap();
        place.kill(store).await;
    }
    let store = place.open().await.unwrap();
    let put = |incident: &Incident| {
        store.commit(WritePriority::Admin, unit([Change::PutIncident(Box::new(incident.clone()))]))
    };
    assert_eq!(store.incident("inc_a").await.unwrap(), Some(first.clone()));
    assert_eq!(store.incident("inc_c").await.unwrap(), None);
    assert_eq!(store.live_incidents().await.unwrap(), [first.clone(), incident("inc_b", None)]);
    first.resolve("it is closed", NOW);
    put(&first).await.unwrap();
    assert_eq!(store.live_incidents().await.unwrap().len(), 2, "somebody has still to be told");
    for (channel, turn) in
        [(&mail, NoticeKind::Opened), (&mail, NoticeKind::Resolved), (&hook, NoticeKind::Resolved)]
    {
        first.settle(channel, turn, Ok(()), NOW);
    }
    let all_sent = |notice: &Notice| matches!(notice.state, NoticeState::Sent { .. });
    assert!(first.notices.len() == 4 && first.notices.iter().all(all_sent));
    put(&first).await.unwrap();
    assert_eq!(store.live_incidents().await.unwrap(), [incident("inc_b", None)]);

    let ids = async |filter: IncidentFilter| {
        let page = store.incidents(filter, FIRST).await.unwrap();
        page.items.into_iter().map(|incident| incident.id).collect::<Vec<_>>()
    };
    let any = IncidentFilter::default;
    assert_eq!(ids(any()).await, ["inc_b", "inc_a"], "the newest first");
    assert_eq!(ids(IncidentFilter { open: Some(false), ..any() }).await, ["inc_a"]);
    assert_eq!(ids(IncidentFilter { service: Some(slug("billing")), ..any() }).await, ["inc_a"]);
    assert_eq!(ids(IncidentFilter { only: Some(vec![slug("billing")]), ..any() }).await, ["inc_a"]);
    assert_eq!(ids(IncidentFilter { severity: Some(Severity::Warning), ..any() }).await, [] as [String; 0]);
    let page = store.incidents(any(), PageRequest { from: None, size: 1 }).await.unwrap();
    let next = store.incidents(any(), PageRequest { from: page.next, size: 1 }).await.unwrap();
    assert_eq!((&*page.items[0].id, &*next.items[0].id), ("inc_b", "inc_a"));

    let prune = |before| Change::Prune(PruneTarget::Incidents { before, limit: 10 });
    let pruned =
        async |before| store.commit(WritePriority::Retention, unit([prune(before)])).await.unwrap().touched;
    assert_eq!(pruned(NOW).await, 0, "it is not old");
    assert_eq!(pruned(Millis(NOW.0 + 1)).await, 1, "the other one is open");
    assert_eq!(ids(any()).await, ["inc_b"]);
}

/// HUB-12: dead letters are counted by service and age, and no further than asked.
pub(crate) async fn hub_12_dead_letters_are_counted_by_age<F: StoreFactory>() {
    let place = F::create().await;
    let store = place.open().await.unwrap();
    let dead = || InitialState::Dead {
        reason: DeadLetterReason::Impossible,
        error: "no request".into(),
        hold: false,
    };
    for n in 0..5 {
        let service = if n < 3 { "billing" } else { "mail" };
        let delivery = NewDelivery { initial: dead(), ..to(service) };
        let add = Change::AddEvent(event(&format!("e-{n}")), vec![delivery]);
        store.commit(WritePriority::Ingest, unit([add])).await.unwrap();
    }
    let counted = async |since, limit| store.dead_since(since, limit).await.unwrap();
    assert_eq!(counted(NOW, 100).await, [(slug("billing"), 3), (slug("mail"), 2)]);
    assert_eq!(counted(Millis(NOW.0 + 1), 100).await, []);
    assert_eq!(counted(NOW, 4).await.iter().map(|(_, count)| count).sum::<u32>(), 4);
    let health = store.health();
    assert!(!health.full && health.failed == 0 && health.refused == 0);
    let free = health.free_bytes;
    assert_eq!(free.is_some_and(|free| free > 0), F::CAPABILITIES.local_disk, "free space of a disk");
}
