//! The reader of bodies and the description of them agree: a body that one accepts, the other accepts too.

use std::sync::LazyLock;

use proptest::prelude::*;
use schemars::JsonSchema;
use seawall_api::{
    AlertChannel, AlertChannelSpec, AlertRule, AlertRuleSpec, BacktestInput, CallInput, KeySpec, MuteInput,
    ReplayManyInput, Rule, RuleSpec, Service, ServiceSpec, Source, SourceSpec,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::document::document;
use super::validate::{Unknown, problems};
use crate::http::input::Input;
use crate::http::shape::schemas_of;

/// A body that the hub reads.
struct ReadBody {
    /// The name of its schema in the description.
    name: &'static str,
    is_refused: fn(Value) -> bool,
    /// The schema with what only the reader knows, such as formats.
    own: &'static Value,
}

impl ReadBody {
    fn new<S: DeserializeOwned + JsonSchema + 'static, V: JsonSchema + 'static>(name: &'static str) -> Self {
        let is_refused = |body| Input::<S, V>::of(body).finish().is_err();
        ReadBody { name, is_refused, own: schemas_of::<S>().0 }
    }

    /// A body whose name is in the path.
    fn named<S: DeserializeOwned + JsonSchema + 'static, V: JsonSchema + 'static>(
        name: &'static str,
    ) -> Self {
        let is_refused = |body| Input::<S, V>::named(body, "billing").finish().is_err();
        ReadBody { is_refused, ..ReadBody::new::<S, V>(name) }
    }

    fn described(&self) -> &'static Value {
        &DOCUMENT["components"]["schemas"][self.name]
    }
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);
static BODIES: LazyLock<[ReadBody; 11]> = LazyLock::new(|| {
    [
        ReadBody::new::<ServiceSpec, Service>("ServiceSpec"),
        ReadBody::new::<RuleSpec, Rule>("RuleSpec"),
        ReadBody::new::<SourceSpec, Source>("SourceSpec"),
        ReadBody::new::<KeySpec, KeySpec>("KeySpec"),
        ReadBody::named::<AlertRuleSpec, AlertRule>("AlertRuleSpecReplacement"),
        ReadBody::named::<AlertChannelSpec, AlertChannel>("AlertChannelSpecReplacement"),
        ReadBody::named::<ServiceSpec, Service>("ServiceSpecReplacement"),
        ReadBody::new::<CallInput, CallInput>("CallInput"),
        ReadBody::new::<BacktestInput, BacktestInput>("BacktestInput"),
        ReadBody::new::<MuteInput, MuteInput>("MuteSettingsInput"),
        ReadBody::new::<ReplayManyInput, ReplayManyInput>("ReplayManyInput"),
    ]
});

/// The fields of an object, or of all of its cases.
fn fields_of(schema: &Value) -> Vec<(&str, &Value)> {
    let cases = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    let fields = cases.iter().flat_map(|case| case["properties"].as_object().unwrap());
    fields.map(|(name, field)| (name.as_str(), field)).collect()
}

/// What takes the place of a field; `None` removes it.
fn replacement() -> impl Strategy<Value = Option<Value>> {
    let text = prop_oneof![Just(String::new()), "[a-z0-9./-]{1,8}", "[A-Z!é]{1,3}", Just("a".repeat(300))];
    let one = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(0_u64), 1..2_000_u64, Just(1_u64 << 40)].prop_map(Value::from),
        Just(json!(-1)),
        text.prop_map(Value::from),
    ];
    let names = "[a-z]{1,6}|maxAttempts|key|type|secret";
    let many = prop_oneof![
        one.clone(),
        prop::collection::vec(one.clone(), 0..3).prop_map(Value::from),
        prop::collection::btree_map(names, one, 0..3).prop_map(|all| json!(all)),
    ];
    prop::option::weighted(0.9, many)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// API-4: the description allows what the reader accepts, and the reader accepts what the description allows. Formats are
    /// left out: they name parsers, of which JSON Schema knows nothing.
    #[test]
    fn api_4_the_reader_and_the_description_agree(
        body in 0..BODIES.len(), example in any::<prop::sample::Index>(), field in any::<prop::sample::Index>(), value in replacement(),
    ) {
        let body = &BODIES[body];
        let own = |name: &str| -> Vec<&Value> {
            let all = fields_of(body.own).into_iter();
            all.filter(|(own, _)| *own == name).map(|(_, field)| field).collect()
        };
        // A version is read by itself, and some fields have a reader of their own.
        let is_read = |name: &&str| *name != "version" && own(name).iter().all(|field| field["x-shape"].is_null());
        let known = fields_of(body.described()).into_iter().map(|(name, _)| name);
        let fields: Vec<&str> = known.filter(is_read).chain(["unknwon"]).collect();
        let field = *field.get(&fields);
        let mut changed = example.get(body.described()["examples"].as_array().unwrap()).clone();
        match value {
            Some(value) => changed[field] = value,
            None => drop(changed.as_object_mut().unwrap().remove(field)),
        }
        let found = problems(&DOCUMENT, body.described(), &changed, Unknown::Allowed);
        let is_refused = (body.is_refused)(changed.clone());
        prop_assert!(found.is_empty() || is_refused, "{}: only the reader accepts {changed}: {found:?}", body.name);
        let has_format = own(field).iter().any(|field| field.to_string().contains("\"format\""));
        prop_assert!(
            !found.is_empty() || !is_refused || has_format,
            "{}: only the description allows {changed}", body.name
        );
    }
}

/// API-4: both accept the examples, and neither accepts a field that nobody knows. Were the examples refused, the comparison
/// would compare nothing.
#[test]
fn api_4_the_reader_and_the_description_accept_the_examples() {
    for ReadBody { name, is_refused, .. } in &*BODIES {
        let schema = &DOCUMENT["components"]["schemas"][name];
        for example in schema["examples"].as_array().unwrap() {
            let mut example = example.clone();
            assert!(!is_refused(example.clone()), "{name}: {example}");
            assert_eq!(problems(&DOCUMENT, schema, &example, Unknown::Allowed), [""; 0], "{name}: {example}");
            example["unknwon"] = json!(1);
            assert!(is_refused(example.clone()), "{name}: {example}");
            assert_ne!(problems(&DOCUMENT, schema, &example, Unknown::Allowed), [""; 0], "{name}: {example}");
        }
    }
}
