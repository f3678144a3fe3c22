//! Reads the body of a request by the shape of its type, and reports every problem at once.
//!
//! serde stops at the first problem, so the body is walked along the derived schema first. What remains after the walk is what
//! serde can read: without nulls, which mean the same as an omitted field, and without read-only fields.

use std::marker::PhantomData;
use std::time::Duration;

use axum::body::Bytes;
use schemars::JsonSchema;
use seawall_api::{DurationText, Name};
use seawall_hub_core::domain::slug::Slug;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::reader::{ShapeReader, integer};
use super::shape::{FieldShape, Shape, ShapeField, shape_of};
use seawall_api::FieldProblem;

/// A body without fields.
#[derive(Serialize, serde::Deserialize, JsonSchema)]
pub(super) struct NoInput {}

/// A request body that is read as an `S`, whose view is a `V`.
///
/// Checks over several fields look at those that were read, also if others are wrong.
pub(super) struct Input<S, V = S> {
    /// The fields as they came; `None` for each that the shape does not know.
    given: Map<String, Value>,
    /// The fields without a problem.
    read: Map<String, Value>,
    problems: Vec<FieldProblem>,
    types: PhantomData<fn() -> (S, V)>,
}

impl<S, V> Input<S, V>
where
    S: DeserializeOwned + JsonSchema + 'static,
    V: JsonSchema + 'static,
{
    /// Reads what creates an object.
    pub(super) fn create(body: &Bytes) -> Result<Self, serde_json::Error> {
        Ok(Self::of(serde_json::from_slice(body)?))
    }

    /// Reads a body that may be omitted.
    pub(super) fn optional(body: &Bytes) -> Result<Self, serde_json::Error> {
        Ok(Self::of(if body.is_empty() { Value::Object(Map::new()) } else { serde_json::from_slice(body)? }))
    }

    /// Reads what replaces the object with the name in the path.
    pub(super) fn put(body: &Bytes, name: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::named(serde_json::from_slice(body)?, name))
    }

    /// Reads a change over the current state as if it had been written whole.
    pub(super) fn patch(current: &S, change: Value, name: &str) -> Self
    where
        S: Serialize,
    {
        Self::named(
            merged(shape_of::<S, V>(), serde_json::to_value(current).unwrap_or_default(), change),
            name,
        )
    }

    /// Reads an object whose name is in the path. The name in the body is optional and must be the same.
    pub(super) fn named(mut value: Value, name: &str) -> Self {
        let given = value.as_object_mut().map(|fields| fields.insert("name".to_owned(), name.into()));
        let mut input = Self::of(value);
        match given.flatten() {
            Some(Value::String(other)) if other != name => {
                input.wrong("name", "must be the name in the path; a name can't be changed");
            }
            Some(value) if !value.is_string() && !value.is_null() => input.wrong("name", "must be a string"),
            _ => {}
        }
        input
    }

    /// Reads a value.
    pub(super) fn of(value: Value) -> Self {
        let shape = shape_of::<S, V>();
        let mut problems = Vec::new();
        let given = value.as_object().cloned().unwrap_or_default();
        let read =
            ShapeReader { problems: &mut problems }.read(&shape.node, without(value, &shape.read_only), "");
        let read = match read {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Input { given, read, problems, types: PhantomData }
    }

    /// The value of a field such as `delivery.base`; `None` if it is omitted or has a problem.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        let mut names = path.split('.');
        let first = self.read.get(names.next()?)?;
        let value = names.try_fold(first, |value, name| value.get(name))?;
        serde_json::from_value(value.clone()).ok()
    }

    /// True if the field is present, even as null.
    pub(super) fn has(&self, field: &str) -> bool {
        self.given.contains_key(field)
    }

    /// A field as it came; `None` if it is omitted or null.
    pub(super) fn raw(&self, field: &str) -> Option<&Value> {
        self.given.get(field).filter(|value| !value.is_null())
    }

    /// Takes a field that has a reader of its own (`x-shape`); `None` if it is omitted or null.
    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.read.remove(field)
    }

    /// The version that the body states: what was returned with an object and is written back with it.
    pub(super) fn version(&mut self) -> Option<u64> {
        let version = self.raw("version")?.as_u64();
        if version.is_none() {
            self.wrong("version", integer(0, u64::MAX));
        }
        version
    }

    pub(super) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldProblem { field: field.into(), reason: reason.into() });
    }

    /// True if a problem was found.
    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// True if a problem was found with this field.
    pub(super) fn has_problem_with(&self, field: &str) -> bool {
        self.problems.iter().any(|problem| problem.field == field)
    }

    /// Adds problems that were found elsewhere. A field that has one already keeps it.
    pub(super) fn also(&mut self, more: impl IntoIterator<Item = FieldProblem>) {
        let known: Vec<String> = self.problems.iter().map(|problem| problem.field.clone()).collect();
        self.problems.extend(more.into_iter().filter(|problem| !known.contains(&problem.field)));
    }

    /// Returns what was read, or every problem.
    pub(super) fn finish(self) -> Result<S, Vec<FieldProblem>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        serde_json::from_value(Value::Object(self.read)).map_err(|error| {
            debug_assert!(false, "the schema accepts what the type does not: {error}");
            vec![FieldProblem { field: String::new(), reason: error.to_string() }]
        })
    }
}

/// A name that the reader has checked.
pub(super) fn slug(name: &Name) -> Slug {
    Slug::new(name.as_str()).expect("the reader has checked it")
}

/// A duration that the reader has checked.
pub(super) fn duration(text: &DurationText) -> Duration {
    seawall::config::duration(text.as_str()).unwrap_or_default()
}

/// An object without these fields.
fn without(mut value: Value, names: &[String]) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !names.contains(name));
    }
    value
}

/// A change over the current state: field by field, and within fields that the schema merges however deep. Null removes.
fn merged(shape: &Shape, current: Value, change: Value) -> Value {
    fn over(before: &mut Value, change: Value) {
        match (before, change) {
            (Value::Object(before), Value::Object(change)) => {
                for (name, value) in change {
                    if value.is_null() {
                        before.remove(&name);
                    } else {
                        over(before.entry(name).or_insert(Value::Null), value);
                    }
                }
            }
            (before, change) => *before = change,
        }
    }
    let (Value::Object(mut all), Value::Object(change)) = (current, change.clone()) else { return change };
    let fields: Vec<&ShapeField> = match &shape.node {
        FieldShape::Object(fields) => fields.iter().collect(),
        FieldShape::Tagged { tag, cases, .. } => {
            // The fields of one case say nothing about another.
            if change.get(tag).is_some_and(|word| *word != all[tag]) {
                all.clear();
            }
            cases.iter().flat_map(|(_, fields)| fields).collect()
        }
        _ => return Value::Object(change),
    };
    for (name, value) in change {
        let is_merged = fields.iter().any(|field| field.name == name && field.is_merged);
        let there = all.entry(name).or_insert(Value::Null);
        if is_merged && there.is_object() && value.is_object() {
            over(there, value);
        } else {
            *there = value;
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use seawall_api::{
        AlertRuleSpec, BulkInput, Canary, EditInput, KeySpec, NoteInput, ReplayManyInput, Rule, RuleSpec,
        Service, ServiceSpec, SourceSpec,
    };
    use serde_json::json;

    use super::*;

    fn problems<S: DeserializeOwned + JsonSchema + 'static, V: JsonSchema + 'static>(
        value: Value,
    ) -> Vec<String> {
        let problems = Input::<S, V>::of(value).finish().err().unwrap_or_default();
        problems.into_iter().map(|problem| format!("{}: {}", problem.field, problem.reason)).collect()
    }

    /// API-2: every problem is reported at once, with the path of its field, in the order of the declaration.
    #[test]
    fn api_2_every_problem_of_a_body_is_reported_at_once() {
        let wrong = json!({
            "name": "Billing!", "type": "ftp", "address": 7, "auth": {"type": "basic", "secret": ""}, "headers": {"x": 1},
            "paused": "yes", "polcy": {},
        });
        assert_eq!(
            problems::<ServiceSpec, Service>(wrong),
            [
                "name: `Billing!` is not a valid name: must consist of lower-case letters, digits and hyphens",
                "type: must be `http`",
                "address: must be a string",
                "auth.username: required",
                "auth.secret: must not be empty",
                "headers.x: must be a string",
                "paused: must be true or false",
                "polcy: unknown field, did you mean `policy`? Known: name, type, address, auth, headers, policy, paused",
            ]
        );
        assert_eq!(problems::<ServiceSpec, Service>(json!([])), [": must be an object"]);
        let rule = json!({
            "eventType": "", "service": null, "delivery": {"maxAttempts": 0, "maxAge": "soon", "count": "some", "x": 1},
            "ordering": 7,
        });
        let found = problems::<RuleSpec, Rule>(rule);
        let expected = [
            "name: required",
            "eventType: must not be empty",
            "service: required",
            "delivery.maxAttempts: must be an integer from 1 to 1000",
            "delivery.maxAge: ",
            "delivery.count: must be `answered` or `all`",
            "delivery.x: unknown field. Known: maxAttempts, maxAge, base, cap, count",
            "ordering: must be an object",
        ];
        assert!(
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, start)| found.starts_with(start)),
            "{found:#?}"
        );
        let key = json!({"name": "a", "scopes": ["read", "raed"], "services": null, "sources": []});
        assert_eq!(
            problems::<KeySpec, KeySpec>(key),
            [
                "scopes: must be one of ingest, call, read, operate, admin, not `raed`",
                "services: must not be empty; omit it for all",
                "sources: must not be empty; omit it for all",
            ],
            "null would look like no limit"
        );
    }

    /// API-2: a value of another JSON type, a list that is too long and a text without a word are problems of their fields.
    #[test]
    fn api_2_a_filter_of_dead_letters_is_read_by_its_shape() {
        let wrong = json!({
            "filter": {"ids": [], "standing": ["open", "opne"], "q": "%", "status": 422.5, "event": "", "group": "x"},
            "canary": [1, 0], "max": "all", "mode": "twice",
        });
        assert_eq!(
            problems::<ReplayManyInput, ReplayManyInput>(wrong),
            [
                "filter.event: must not be empty; omit it for all",
                "filter.group: must be a fingerprint such as `grp_0123456789abcdef`",
                "filter.ids: must not be empty; omit it for all",
                "filter.q: must contain a word",
                "filter.standing: must be one of open, replaying, delivered, failedAgain, parked, deleted, not `opne`",
                "filter.status: must be an integer from 100 to 999",
                "canary[1]: must be an integer from 1 to 4294967295",
                "max: must be an integer from 1 to 18446744073709551615",
                "mode: must be `render` or `same`",
            ]
        );
        let wrong =
            json!({"filter": {"standing": true, "ids": vec!["x"; 1_001]}, "canary": 7, "ratePerSecond": 0});
        assert_eq!(
            problems::<ReplayManyInput, ReplayManyInput>(wrong),
            [
                "filter.ids: must not have more than 1000 items",
                "filter.standing: must be a string or a list of strings",
                "canary: must be true or false or a list",
                "ratePerSecond: must be an integer from 1 to 10000",
            ]
        );
        let read = |standing: Value| {
            let body = json!({"filter": {"standing": standing, "status": 422.0}, "canary": [1, 2]});
            Input::<ReplayManyInput>::of(body).finish().unwrap()
        };
        assert_eq!(read(json!("open, parked")), read(json!(["open", "parked"])));
        let read = read(json!(["open"]));
        assert_eq!(
            (read.filter.failure.status, read.replay.canary),
            (Some(422), Some(Canary::Stages(vec![1, 2])))
        );
        assert_eq!(
            problems::<BulkInput, BulkInput>(json!({})),
            ["filter: required: a filter such as `{\"service\": \"billing\"}`, or `{}` for all"]
        );
    }

    /// API-2: null is a value where it means something else than an omitted field.
    #[test]
    fn api_2_null_is_kept_where_it_has_a_meaning() {
        let note = |body: Value| Input::<NoteInput>::of(body).finish().map(|input| input.note);
        assert_eq!(note(json!({"note": null})), Ok(None));
        assert_eq!(note(json!({"note": "#7"})), Ok(Some("#7".into())));
        assert_eq!(note(json!({})).unwrap_err()[0].reason, "required: a text, or null to remove the note");
        let edit = |body: Value| Input::<EditInput>::of(body).finish().unwrap();
        assert_eq!(edit(json!({"data": null})).data, Some(Value::Null));
        assert_eq!(edit(json!({})).data, None);
        assert_eq!(edit(json!({"request": {"body": null}})).request.unwrap().body, Some(Value::Null));
    }

    /// HUB-1: what is shown can be written back: read-only fields and nulls are passed over.
    #[test]
    fn hub_1_read_only_fields_and_nulls_are_passed_over() {
        let shown = json!({
            "name": "billing", "address": "http://a", "policy": null, "version": 3, "changedAt": "now", "waiting": 1,
            "inHand": 1, "auth": {"type": "webhook", "secret": "…", "formerSecrets": "…"},
        });
        let mut input = Input::<ServiceSpec, Service>::of(shown);
        assert_eq!(
            (input.version(), input.get::<String>("auth.type").as_deref()),
            (Some(3), Some("webhook"))
        );
        let spec = input.finish().unwrap();
        assert_eq!((spec.name.as_str(), spec.policy, spec.paused), ("billing", None, false));
        assert_eq!(
            problems::<SourceSpec, SourceSpec>(json!({"name": "a", "eventType": "b", "version": 1})).len(),
            1
        );
    }

    /// HUB-1: a change replaces a field, or is merged into it where the schema says so; null removes.
    #[test]
    fn hub_1_a_change_is_merged_where_the_schema_says_so() {
        let mut spec = ServiceSpec::new("billing", "http://a");
        spec.headers.insert("x-a".into(), "1".into());
        let change = json!({"headers": {"x-a": null, "x-b": "2"}, "paused": true});
        let changed = Input::<ServiceSpec, Service>::patch(&spec, change, "billing").finish().unwrap();
        assert_eq!(changed.headers.into_iter().collect::<Vec<_>>(), [("x-b".to_owned(), "2".to_owned())]);
        assert!(changed.paused && changed.address == "http://a");
        let renamed = Input::<ServiceSpec, Service>::patch(&spec, json!({"name": "other"}), "billing");
        assert_eq!(renamed.finish().unwrap_err()[0].field, "name");
    }

    /// API-2: a check over several fields sees those that could be read, also if others are wrong.
    #[test]
    fn api_2_fields_without_a_problem_can_be_read_beside_wrong_ones() {
        let input = Input::<RuleSpec, Rule>::of(json!({"delivery": {"base": "2s", "cap": "never"}}));
        assert_eq!(input.get::<String>("delivery.base").as_deref(), Some("2s"));
        assert_eq!((input.get::<String>("delivery.cap"), input.get::<String>("name")), (None, None));
    }

    proptest::proptest! {
        /// API-4: whatever the reader accepts, the type can be made of.
        #[test]
        fn api_4_what_the_reader_accepts_is_read(
            name in "[a-zA-Z-]{0,4}", field in 0..14_usize, word in "[a-z0-9]{0,6}", number in 0..3_u64,
        ) {
            const FIELDS: [&str; 14] = [
                "kind", "enabled", "severity", "services", "channels", "for", "resolveAfter", "muted", "moreThan", "window",
                "olderThan", "freeBytesBelow", "version", "other",
            ];
            for value in [json!(word), json!(number), json!([word]), json!({"until": word}), json!(true), Value::Null] {
                let body = json!({"name": name, FIELDS[field]: value});
                let _ = Input::<AlertRuleSpec>::of(body.clone()).finish();
                let _ = Input::<RuleSpec, Rule>::of(body.clone()).finish();
                let _ = Input::<ServiceSpec, Service>::of(body).finish();
            }
        }
    }
}
