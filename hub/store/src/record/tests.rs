use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use seawall_hub_core::domain::alert::{
    Acknowledgement, AlertRule, Channel, Condition, ConditionKind, Incident, Mute, Notice, NoticeKind,
    NoticeState, Resolution, Severity,
};
use seawall_hub_core::domain::delivery::{FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::domain::service::{SealedSecret, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;

use super::*;

fn slug() -> impl Strategy<Value = Slug> {
    "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?".prop_map(|name| Slug::new(&name).unwrap())
}

fn slugs() -> impl Strategy<Value = Option<Vec<Slug>>> {
    option::of(vec(slug(), 0..4))
}

fn secret() -> impl Strategy<Value = SealedSecret> {
    vec(any::<u8>(), 0..100).prop_map(SealedSecret)
}

fn time() -> impl Strategy<Value = Millis> {
    any::<i64>().prop_map(Millis)
}

/// Documents hold whole milliseconds.
fn length() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_millis)
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(any::<(String, String)>(), 0..4)
}

prop_compose! {
    fn service()(
        name in slug(), version: u64, address: String, headers in pairs(), auth in option::of(secret()), policy: String,
        paused: bool, changed in time(),
    ) -> Service {
        Service { name, version, address, headers, auth, policy, paused, changed }
    }
}

prop_compose! {
    fn schedule()(
        attempts: Option<u32>, age_max in length(), base in length(), cap in length(), all: bool,
    ) -> Schedule {
        let count = if all { FailureCounting::All } else { FailureCounting::Answered };
        Schedule { attempts, age_max, base, cap, count }
    }
}

prop_compose! {
    fn rule()(
        (name, version, service, enabled) in (slug(), any::<u64>(), slug(), any::<bool>()), kind in "[a-z]{1,8}(\\.\\*)?",
        (filter, body, note) in any::<[Option<String>; 3]>().prop_map(<(_, _, _)>::from), method: String, path: String,
        headers in pairs(), schedule in schedule(), ordering: Option<(String, bool)>, changed in time(),
    ) -> Rule {
        let ordering = ordering.map(|(key, hold)| OrderingRule { key, hold });
        let events = Pattern::new(&kind).unwrap();
        Rule {
            name, version, events, filter, service, method, path, headers, body, schedule, ordering, enabled, note, changed,
        }
    }
}

prop_compose! {
    fn source()(
        name in slug(), version: u64, proof in secret(), event_type: String, event_id: Option<String>, enabled: bool,
        changed in time(),
    ) -> Source {
        Source { name, version, proof, event_type, event_id, enabled, changed }
    }
}

prop_compose! {
    fn key()(
        name in slug(), hash: [u8; 32], former in option::of((any::<[u8; 32]>(), time())),
        scopes in proptest::sample::subsequence(Scope::ALL.to_vec(), 0..=Scope::ALL.len()), services in slugs(),
        sources: Option<Vec<String>>, made in time(), expires in option::of(time()), revoked in option::of(time()),
    ) -> Key {
        let scopes = scopes.into_iter().collect();
        Key { name, hash, former, scopes, services, sources, made, expires, revoked }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let counted = || (any::<u32>(), length());
    prop_oneof![
        Just(Condition::CircuitOpen),
        counted().prop_map(|(more_than, window)| Condition::DeadLetters { more_than, window }),
        length().prop_map(|older_than| Condition::OldestDue { older_than }),
        counted().prop_map(|(more_than, window)| Condition::Warnings { more_than, window }),
        counted().prop_map(|(more_than, window)| Condition::Errors { more_than, window }),
        any::<u64>().prop_map(|free_below| Condition::DataLossRisk { free_below }),
    ]
}

prop_compose! {
    fn alert_rule()(
        (name, version, enabled) in (slug(), any::<u64>(), any::<bool>()), condition in condition(), critical: bool,
        (services, channels) in (slugs(), slugs()), (holds, clears) in (length(), length()),
        muted in option::of((time(), any::<String>())), changed in time(),
    ) -> AlertRule {
        let severity = if critical { Severity::Critical } else { Severity::Warning };
        let muted = muted.map(|(until, reason)| Mute { until, reason });
        AlertRule { name, version, condition, enabled, severity, services, channels, holds, clears, muted, changed }
    }
}

fn notice() -> impl Strategy<Value = Notice> {
    let state = prop_oneof![
        time().prop_map(|due| NoticeState::Waiting { due }),
        time().prop_map(|at| NoticeState::Sent { at }),
        Just(NoticeState::Dropped),
    ];
    let opened =
        any::<bool>().prop_map(|opened| if opened { NoticeKind::Opened } else { NoticeKind::Resolved });
    (slug(), opened, time(), state, any::<u32>(), any::<Option<String>>()).prop_map(
        |(channel, turn, made, state, tries, error)| Notice { channel, turn, made, state, tries, error },
    )
}

prop_compose! {
    fn incident()(
        (id, rule, service) in (any::<String>(), slug(), option::of(slug())),
        (kind, critical) in (proptest::sample::select(ConditionKind::ALL.to_vec()), any::<bool>()),
        (opened, updated, resolved) in (time(), time(), option::of((time(), any::<String>()))),
        value in proptest::num::f64::NORMAL | proptest::num::f64::INFINITE | proptest::num::f64::ZERO, summary: String,
        acknowledged in option::of((any::<String>(), time(), any::<Option<String>>())),
        muted in option::of((time(), any::<String>())), notified: bool, notices in vec(notice(), 0..4),
    ) -> Incident {
        Incident {
            id, rule, kind, service, opened, updated, value, summary, notified, notices,
            severity: if critical { Severity::Critical } else { Severity::Warning },
            resolved: resolved.map(|(at, because)| Resolution { at, because }),
            acknowledged: acknowledged.map(|(who, at, reason)| Acknowledgement { who, at, reason }),
            muted: muted.map(|(until, reason)| Mute { until, reason }),
        }
    }
}

/// Writes the document of a resource and reads it again.
fn round_trip<'r, T, R: Record + From<&'r T>>(resource: &'r T) -> R {
    decode("any", &encode::<R>(resource).unwrap()).unwrap()
}

proptest! {
    /// HUB-14: a service is read as it was written.
    #[test]
    fn hub_14_a_service_survives_its_document(service in service()) {
        let read: ServiceRecord = round_trip(&service);
        prop_assert_eq!(read.into_service(service.name.clone(), service.version), service);
    }

    /// HUB-14: a version of a rule is read as it was written.
    #[test]
    fn hub_14_a_rule_survives_its_document(rule in rule()) {
        let read: RuleRecord = round_trip(&rule);
        let read = read.into_rule(rule.name.clone(), rule.version, rule.service.clone(), rule.enabled);
        prop_assert_eq!(read, rule);
    }

    /// HUB-14: a source is read as it was written.
    #[test]
    fn hub_14_a_source_survives_its_document(source in source()) {
        let read: SourceRecord = round_trip(&source);
        prop_assert_eq!(read.into_source(source.name.clone(), source.version, source.enabled), source);
    }

    /// HUB-14: a key is read as it was written.
    #[test]
    fn hub_14_a_key_survives_its_document(key in key()) {
        let read: KeyRecord = round_trip(&key);
        prop_assert_eq!(read.into_key(key.name.clone()), key);
    }

    /// HUB-14: an alert rule is read as it was written.
    #[test]
    fn hub_14_an_alert_rule_survives_its_document(rule in alert_rule()) {
        let read: AlertRuleRecord = round_trip(&rule);
        prop_assert_eq!(read.into_alert_rule(rule.name.clone(), rule.version, rule.enabled), rule);
    }

    /// HUB-14: an incident is read as it was written, up to the last digit of its value.
    #[test]
    fn hub_14_an_incident_survives_its_document(incident in incident()) {
        let read: IncidentRecord = round_trip(&incident);
        prop_assert_eq!(read.into_incident(incident.id.clone()), incident);
    }

    /// HUB-14: no document has a character that a text of a database can't hold.
    #[test]
    fn hub_14_documents_have_no_control_characters(incident in incident()) {
        let incident = Incident { summary: format!("{}\0\u{1}", incident.summary), ..incident };
        let document = encode::<IncidentRecord>(&incident).unwrap();
        prop_assert!(!document.contains(|one| one < ' '), "{document:?}");
    }

    /// HUB-14: a channel is read as it was written.
    #[test]
    fn hub_14_a_channel_survives_its_document(
        name in slug(), version: u64, settings in secret(), changed in time(),
    ) {
        let channel = Channel { name, version, settings, changed };
        let read: ChannelRecord = round_trip(&channel);
        prop_assert_eq!(read.into_channel(channel.name.clone(), version), channel);
    }
}

/// HUB-14: a field that an earlier version has not written has its default, and one that a later version has written is skipped.
#[test]
fn hub_14_documents_of_other_versions_are_read() {
    let document = r#"{"address": "http://a.example", "policy": "{}", "changed_ms": 7, "of_later": [1]}"#;
    let service = decode::<ServiceRecord>("a", document).unwrap().into_service(Slug::new("a").unwrap(), 3);
    assert_eq!((service.address.as_str(), service.changed), ("http://a.example", Millis(7)));
    assert_eq!((service.headers, service.auth, service.paused), (vec![], None, false));
}

/// HUB-14: the error for a document that can't be read names the table, the row and the field.
#[test]
fn hub_14_an_unreadable_row_is_named() {
    let reason = |document: &str| decode::<SourceRecord>("stripe", document).err().unwrap().to_string();
    let missing = reason(r#"{"proof": "00", "changed_ms": 1}"#);
    assert!(missing.starts_with("the row `stripe` of the table `sources` can't be read: "), "{missing}");
    assert!(missing.contains("missing field `event_type`"), "{missing}");
    assert!(reason(r#"{"proof": "0g", "event_type": "a", "changed_ms": 1}"#).contains("not hexadecimal"));
    assert!(reason("{").contains("EOF"));
}
