//! Every resource by its type, and every problem of a wrong one.

use seawall_client::api::{
    AlertChannelSpec, AlertQuery, Auth, CallInput, CallResult, ChannelSettings, CircuitState,
    DeadLetterQuery, DeadLetterReason, DeliveryQuery, DeliveryState, ErrorCode, EventBatch, EventInput,
    EventQuery, ExportQuery, GroupQuery, GroupStateInput, HistoryQuery, KeySpec, LetterState, MuteInput,
    NoteInput, PageQuery, PendingPolicy, Reason, ReplayInput, ReplayManyInput, ReplayMode, RequiredReason,
    RotateInput, RuleSpec, Scope, ServiceSpec, ServiceStatusQuery, SourceSpec, TestRequest, Verify,
    WriteOnly,
};
use seawall_client::api::{BulkResult, DeadLetterFilter};
use seawall_client::{Client, ClientError, RawJson};
use serde_json::json;
use tempfile::TempDir;

use super::{client, run};
use crate::harness::Hub;
use crate::peer::{Peer, PeerBehavior};

/// Waits until the delivery of an event has ended.
async fn ended(hub: &Client, id: &str) -> DeliveryState {
    loop {
        let state = hub.deliveries().get(id).await.unwrap().delivery.state.clone();
        if matches!(state, DeliveryState::Delivered | DeliveryState::DeadLettered) {
            return state;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

// API-4, HUB-10: what the hub returns is what the types say, for everything that is registered; what is read can be written back,
// and a secret is never shown.
#[test]
fn api_4_what_is_registered_is_written_and_read_by_its_type() {
    let folder = TempDir::new().unwrap();
    let (hub, peer) = (Hub::start(folder.path()), Peer::start());
    let hub = client(&hub);
    run(async {
        let mut spec = ServiceSpec::new("billing", peer.address.as_str());
        spec.auth = Some(Auth::bearer("a-secret-token"));
        spec.headers.insert("x-team".into(), "orders".into());
        let made = hub.services().put(&spec).if_version(0).reason("a new one").await.unwrap();
        assert!(made.is_created() && made.version == 1 && !made.text().contains("a-secret-token"));
        assert_eq!(made.spec.auth, Some(Auth::Bearer { secret: WriteOnly::Keep }));
        assert_eq!((&made.circuit, made.waiting), (&Some(CircuitState::Closed), 0));
        let again = hub.services().put(&made.spec).if_version(1).await.unwrap();
        assert_eq!((again.version, &again.spec.auth), (2, &made.spec.auth));
        let stale = hub.services().put(&spec).if_version(1).await.unwrap_err();
        assert!(stale.is_stale() && !stale.is_retryable() && stale.status() == Some(412), "{stale}");
        let changed = hub.services().patch("billing", &json!({"headers": {"x-team": null}})).await.unwrap();
        assert!(changed.spec.headers.is_empty() && changed.spec.auth.is_some());
        assert!(hub.services().pause("billing").await.unwrap().spec.paused);
        assert!(!hub.services().resume("billing").await.unwrap().spec.paused);
        assert_eq!(hub.services().test("billing", &TestRequest::default()).await.unwrap().good, Some(true));
        let reason = RequiredReason { reason: "maintenance".into() };
        hub.circuits().force_open("billing", &reason).await.unwrap();
        let circuit = hub.circuits().get("billing").await.unwrap();
        assert_eq!(circuit.state, Some(CircuitState::ForcedOpen));
        assert_eq!(circuit.details.as_ref().unwrap().history[0].state, CircuitState::ForcedOpen);
        hub.circuits().reset("billing", &Reason::default()).await.unwrap();

        let mut rule = RuleSpec::new("invoices", "order.*", "billing");
        rule.filter = Some("data.total > 100".into());
        let rule = hub.rules().create(&rule).await.unwrap();
        assert!(rule.is_created() && rule.spec.delivery.as_ref().unwrap().cap.is_some());
        assert_eq!(hub.rules().disable("invoices", &Reason { reason: None }).await.unwrap().version, 2);
        assert!(hub.rules().enable("invoices").await.unwrap().spec.enabled);
        assert_eq!(hub.rules().versions("invoices").await.unwrap().len(), 3);
        // The content of the first version is that of the newest, so that there is nothing to restore.
        assert_eq!(hub.rules().rollback("invoices", 1).await.unwrap().version, 3);

        let secrets = vec![WriteOnly::from("shared-by-both")];
        let source = SourceSpec::new("github", Verify::Github { secrets }, "github.push");
        let source = hub.sources().put(&source).await.unwrap();
        assert_eq!(source.spec.verify, Some(Verify::Github { secrets: vec![WriteOnly::Keep] }));
        assert_eq!((source.path.as_str(), hub.sources().list().await.unwrap().len()), ("/in/github", 1));

        let key = hub.keys().create(&KeySpec::new("shop", [Scope::Ingest])).await.unwrap();
        assert!(!key.key.is_empty() && !format!("{:?}", *key).contains(&key.key));
        let rotated = hub.keys().rotate("shop", &RotateInput { grace: Some("10m".into()) }).await.unwrap();
        assert!(rotated.about.former_until.is_some() && rotated.key != key.key);
        assert!(hub.keys().revoke("shop").await.unwrap().revoked_at.is_some());
        assert_eq!(hub.keys().list().await.unwrap().last().unwrap().scopes, [Scope::Ingest]);

        assert!(hub.rules().delete("invoices", PendingPolicy::Refuse).await.unwrap().deleted);
        assert!(hub.sources().delete("github").await.unwrap().deleted);
        assert!(hub.services().delete("billing", PendingPolicy::DeadLetter).await.unwrap().deleted);
        assert!(hub.services().get("billing").await.unwrap_err().is_not_found());
    });
}

// API-4, HUB-10: the same for events, deliveries, calls, dead letters and operations.
#[test]
fn api_4_what_happens_is_read_by_its_type() {
    let folder = TempDir::new().unwrap();
    let (hub, peer) = (Hub::start(folder.path()), Peer::start());
    let hub = client(&hub);
    run(async {
        hub.services().put(&ServiceSpec::new("billing", peer.address.as_str())).await.unwrap();
        hub.rules().put(&RuleSpec::new("invoices", "order.*", "billing")).await.unwrap();
        let sent = EventInput::new("evt-1", "order.created", json!({"total": 120.5}));
        let accepted = hub.events().send(&sent).await.unwrap();
        assert_eq!((accepted.status(), accepted.deliveries.len(), accepted.deduplicated), (202, 1, false));
        assert!(hub.events().send(&sent).await.unwrap().deduplicated);
        assert_eq!(ended(&hub, accepted.deliveries[0].as_str()).await, DeliveryState::Delivered);

        peer.behave(PeerBehavior::Respond(422));
        let batch = EventBatch { events: vec![sent, EventInput::new("evt-2", "order.created", json!({}))] };
        let batch = hub.events().send_batch(&batch).await.unwrap();
        assert_eq!((batch.accepted, batch.refused, batch.results.len()), (2, 0, 2));
        let query = DeliveryQuery { event: Some("evt-2".into()), ..DeliveryQuery::default() };
        let id = hub.deliveries().list(&query).await.unwrap().deliveries[0].id.clone();
        assert_eq!(ended(&hub, id.as_str()).await, DeliveryState::DeadLettered);
        assert_eq!(hub.events().get("evt-2").await.unwrap().event.r#type, "order.created");
        let events = hub.events().list(&EventQuery::default()).await.unwrap();
        assert_eq!((events.events.len(), events.raw_items().len()), (2, 2));

        let letters = hub.dead_letters();
        let found = letters.list(&DeadLetterQuery::default()).await.unwrap();
        let letter = &found.dead_letters[0];
        assert_eq!((&letter.standing, letter.status), (&LetterState::Open, Some(422)));
        assert_eq!(letter.delivery.reason, Some(DeadLetterReason::Refused));
        let whole = letters.get(id.as_str()).await.unwrap();
        assert_eq!((whole.attempts.len(), whole.attempts[0].status), (1, Some(422)));
        assert_eq!(whole.raw_event.get("id"), Some(&json!("evt-2")));
        let note = NoteInput { note: Some("#4711".into()), reason: None };
        assert_eq!(letters.note(id.as_str(), &note).await.unwrap().note.as_deref(), Some("#4711"));
        let mut exported = letters.export(&ExportQuery::default()).await.unwrap();
        assert_eq!(exported.next().await.unwrap().unwrap().letter.delivery.id, id);
        assert!(exported.next().await.unwrap().is_none());

        let groups = hub.dead_letter_groups().list(&GroupQuery::default()).await.unwrap();
        let group = groups.dead_letter_groups[0].fingerprint.as_str();
        hub.dead_letter_groups().acknowledge(group, &GroupStateInput::default()).await.unwrap();
        let group = hub.dead_letter_groups().get(group).await.unwrap();
        assert_eq!((group.group.counts.open, group.sample_letter.is_some()), (1, true));

        let many = ReplayManyInput { filter: DeadLetterFilter::default(), ..ReplayManyInput::default() };
        let mut dry = many.clone();
        dry.replay.options.dry_run = Some(true);
        let preview = letters.replay_many(&dry).await.unwrap();
        assert!(matches!(&*preview, BulkResult::Preview(preview) if preview.count == 1));
        peer.behave(PeerBehavior::Respond(200));
        let started = letters.replay_many(&many).await.unwrap();
        let BulkResult::Started(operation) = &*started else { panic!("{started:?}") };
        let operation = hub.operations().get(operation.id.as_str()).await.unwrap();
        assert_eq!(operation.plan.as_ref().unwrap().mode, ReplayMode::Render);
        assert_eq!(hub.operations().list(&PageQuery::default()).await.unwrap().operations.len(), 1);
        let twice = letters.replay(id.as_str(), &ReplayInput::default()).await.unwrap_err();
        assert_eq!(twice.code(), Some(&ErrorCode::Conflict), "{twice}");

        let called = hub.call("billing", &CallInput::default()).await.unwrap();
        assert!(matches!(&*called, CallResult::Response(response) if response.http_status == 200));
        let missing = hub.call("nobody", &CallInput::default()).await.unwrap_err();
        assert!(missing.is_not_found());
    });
}

// API-4, HUB-10: the same for alerts and for what the hub says of itself.
#[test]
fn api_4_the_hub_describes_itself_by_types() {
    let folder = TempDir::new().unwrap();
    let (hub, peer) = (Hub::start(folder.path()), Peer::start());
    let hub = client(&hub);
    run(async {
        hub.services().put(&ServiceSpec::new("billing", peer.address.as_str())).await.unwrap();
        let rules = hub.alert_rules().list().await.unwrap();
        assert!(rules.len() > 3 && rules.iter().all(|rule| rule.built_in && rule.spec.kind.is_some()));
        let rule = rules[0].spec.name.as_str();
        let mute = MuteInput { r#for: Some("2h".into()), until: None, reason: "migration".into() };
        assert!(hub.alert_rules().mute(rule, &mute).await.unwrap().spec.muted.is_some());
        assert!(hub.alert_rules().unmute(rule).await.unwrap().spec.muted.is_none());
        let changed = hub.alert_rules().patch(rule, &json!({"enabled": false})).await.unwrap();
        assert_eq!(changed.spec.enabled, Some(false));
        assert!(hub.alert_rules().delete(rule).await.unwrap().reset);
        let settings = ChannelSettings::Webhook { url: format!("{}/alerts", peer.address), secret: None };
        let channel = AlertChannelSpec { name: "duty".into(), settings };
        let channel = hub.alert_channels().put("duty", &channel).await.unwrap();
        assert!(
            matches!(&channel.settings, Some(ChannelSettings::Webhook { url, .. }) if url.ends_with('…'))
        );
        assert!(hub.alert_channels().test("duty").await.unwrap().sent);
        let channels = hub.alert_channels().list().await.unwrap();
        assert_eq!(channels[0].settings, Some(ChannelSettings::Log));
        assert!(hub.alert_channels().delete("duty").await.unwrap().deleted);
        assert!(hub.alerts().list(&AlertQuery::default()).await.unwrap().alerts.is_empty());

        let overview = hub.ops().overview().await.unwrap();
        assert_eq!((overview.services.total, overview.events.is_some()), (1, true));
        let status = hub.ops().services(&ServiceStatusQuery::default()).await.unwrap();
        assert_eq!((status.total, status.services[0].name.as_str()), (1, "billing"));
        assert!(hub.ops().history(&HistoryQuery::default()).await.unwrap().seconds_per_point > 0);
        let page = PageQuery { page_size: Some(2), page_token: None };
        let audit = hub.ops().audit(&page).await.unwrap();
        assert!(audit.entries.len() == 2 && !audit.next_page_token.is_empty());
        let page = PageQuery { page_token: Some(audit.next_page_token.clone()), ..page };
        assert!(!hub.ops().audit(&page).await.unwrap().entries.is_empty());
        assert!(hub.ops().health().await.unwrap().circuits_not_closed.is_empty());
        assert_eq!(hub.ops().readiness().await.unwrap().state, "up");
        assert_eq!(hub.ops().liveness().await.unwrap().state, "up");
        assert!(hub.ops().rotate_secrets().await.unwrap().unreadable.is_empty());
    });
}

// API-2, API-4: a wrong body is refused with all its problems at once, and the error converts with `?`.
#[test]
fn api_2_a_wrong_body_shows_all_its_problems() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::start(folder.path());
    let (address, hub) = (hub.address.clone(), client(&hub));
    run(async {
        let body = r#"{"name": "Not A Name", "adress": "x", "auth": {"type": "bearer"}, "paused": "yes"}"#;
        let error = hub.services().create(RawJson(body.into())).await.unwrap_err();
        assert_eq!((error.status(), error.code()), (Some(422), Some(&ErrorCode::Invalid)));
        let fields: Vec<&str> = error.problems().iter().map(|problem| problem.field.as_str()).collect();
        for field in ["name", "adress", "address", "auth.secret", "paused"] {
            assert!(fields.contains(&field), "{field} is not in {fields:?}");
        }
        assert!(!error.is_retryable() && error.trace_id().is_some_and(|trace| trace.len() == 32));
        let report = async { anyhow::Ok(hub.services().get("nobody").await?.version) }.await.unwrap_err();
        assert!(report.downcast_ref::<ClientError>().unwrap().is_not_found(), "{report}");
        let stranger = Client::new(format!("http://{address}"), "another-key-that-is-long").unwrap();
        let error = stranger.services().list().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::Unauthorised));
    });
}

// API-4: every future of the client can be sent to another thread.
#[test]
fn api_4_every_future_is_send() {
    fn is_send<T: Send>(_: &T) {}
    let hub = Client::new("http://127.0.0.1:1", "a-key").unwrap();
    is_send(&hub.services().list().send());
    is_send(&hub.dead_letters().export(&ExportQuery::default()));
    is_send(&IntoFuture::into_future(hub.ops().health()));
}
