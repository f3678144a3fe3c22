//! What holds for all types.

use serde_json::json;

use super::*;

// API-4: a word that this version does not know is kept, and written back as it came.
#[test]
fn api_4_an_unknown_word_is_kept() {
    let state: CircuitState = serde_json::from_value(json!("melted")).unwrap();
    assert_eq!(state, CircuitState::Other("melted".into()));
    assert_eq!(serde_json::to_value(&state).unwrap(), json!("melted"));
    assert_eq!(serde_json::from_value::<CircuitState>(json!("halfOpen")).unwrap(), CircuitState::HalfOpen);
}

// API-4: a field that this version does not know is no error, and an unknown type of credentials is readable.
#[test]
fn api_4_a_newer_hub_is_read() {
    let service: Service = serde_json::from_value(json!({
        "name": "billing", "type": "carrier-pigeon", "address": "http://x", "auth": {"type": "retina", "eye": "left"},
        "headers": {}, "policy": {}, "paused": false, "version": 1, "changedAt": "2026-11-15T12:00:00Z", "circuit": null,
        "warnings": [], "waiting": 0, "inFlight": 0, "waitsFor": null, "waitsUntil": null, "waitsBecause": null,
        "mood": "good",
    }))
    .unwrap();
    assert_eq!(service.spec.r#type, ServiceType::Other("carrier-pigeon".into()));
    assert_eq!(service.spec.auth, Some(Auth::Unreadable));
}

// API-4, SEC-2: what the hub shows of credentials has no secret in it, and means that the secrets stay when it is written back.
#[test]
fn api_4_a_secret_is_never_shown() {
    let former_secrets = FormerSecrets(vec![Exposed("two".into()), Exposed("three".into())]);
    let auth = Auth::Webhook { secret: Exposed("one".into()), former_secrets };
    assert!(!format!("{auth:?}").contains("one"));
    let sealed = serde_json::to_value(&auth).unwrap();
    assert_eq!(sealed, json!({"type": "webhook", "secret": "one", "formerSecrets": ["two", "three"]}));
    assert_eq!(serde_json::from_value::<Auth<Exposed>>(sealed).unwrap(), auth);
    let shown = auth.hidden();
    let text = serde_json::to_value(&shown).unwrap();
    assert_eq!(text, json!({"type": "webhook", "secret": "…", "formerSecrets": "…"}));
    assert_eq!(serde_json::from_value::<Auth<WriteOnly>>(text).unwrap(), shown);
    let written = Auth::bearer("token");
    assert_eq!(serde_json::to_value(&written).unwrap(), json!({"type": "bearer", "secret": "token"}));
    assert!(!format!("{written:?}").contains("token"));
}

// API-4: a body that is null is not the same as one that is not named.
#[test]
fn api_4_null_is_not_the_same_as_omitted() {
    let edit: RequestEdit = serde_json::from_value(json!({"body": null})).unwrap();
    assert_eq!(edit.body, Some(serde_json::Value::Null));
    assert_eq!(serde_json::to_value(&edit).unwrap(), json!({"body": null}));
    assert_eq!(serde_json::from_value::<RequestEdit>(json!({})).unwrap().body, None);
}

// API-4: states of dead letters are a list, or a text with commas.
#[test]
fn api_4_states_are_a_list_or_a_text() {
    let states = LetterStates(vec![LetterState::Open, LetterState::FailedAgain]);
    for written in [json!("open, failedAgain"), json!(["open", "failedAgain"])] {
        assert_eq!(serde_json::from_value::<LetterStates>(written).unwrap(), states);
    }
}

/// Checks that every example in the schema of a type is one of its values.
#[cfg(feature = "schema")]
fn examples_are_values<T: schemars::JsonSchema + serde::de::DeserializeOwned>() {
    let schema = schemars::schema_for!(T);
    for example in schema.get("examples").and_then(|all| all.as_array()).into_iter().flatten() {
        let read = serde_json::from_value::<T>(example.clone());
        assert!(read.is_ok(), "{}: {:?}", T::schema_name(), read.err());
    }
}

// API-4: every example in the description of the API is a value of its type.
#[cfg(feature = "schema")]
#[test]
fn api_4_every_example_is_a_value_of_its_type() {
    examples_are_values::<ServiceSpec>();
    examples_are_values::<Auth<WriteOnly>>();
    examples_are_values::<Policy>();
    examples_are_values::<TestRequest>();
    examples_are_values::<RuleSpec>();
    examples_are_values::<DeliverySettings>();
    examples_are_values::<EvaluateInput>();
    examples_are_values::<BacktestInput>();
    examples_are_values::<SourceSpec>();
    examples_are_values::<Verify<WriteOnly>>();
    examples_are_values::<KeySpec>();
    examples_are_values::<EventInput>();
    examples_are_values::<EventBatch>();
    examples_are_values::<AcceptedEvent>();
    examples_are_values::<ReplayInput>();
    examples_are_values::<EditInput>();
    examples_are_values::<NoteInput>();
    examples_are_values::<DeadLetterFilter>();
    examples_are_values::<ReplayManyInput>();
    examples_are_values::<PurgeInput>();
    examples_are_values::<CallInput>();
    examples_are_values::<MuteInput>();
    examples_are_values::<AttentionItem>();
    examples_are_values::<ErrorBody>();
}
