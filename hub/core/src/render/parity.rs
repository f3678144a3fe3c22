//! Expressions mean what they mean in minijinja: both evaluate the same random expressions over the same event.

use minijinja::{Environment, UndefinedBehavior, Value, filters, tests};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::expression::{CompiledExpression, EVENT, TextBuilder, write_json};
use super::{EventFields, Meter, TemplateContext};

/// The language as minijinja evaluates it.
fn environment() -> Environment<'static> {
    let mut language = Environment::empty();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    language.add_filter("default", filters::default);
    language.add_filter("upper", filters::upper);
    language.add_filter("lower", filters::lower);
    language.add_filter("trim", filters::trim);
    language.add_filter("replace", filters::replace);
    language.add_filter("split", filters::split);
    language.add_filter("join", filters::join);
    language.add_filter("length", filters::length);
    language.add_filter("first", filters::first);
    language.add_filter("last", filters::last);
    language.add_filter("min", filters::min);
    language.add_filter("max", filters::max);
    language.add_filter("sum", filters::sum);
    language.add_filter("abs", filters::abs);
    language.add_filter("round", filters::round);
    language.add_filter("int", filters::int);
    language.add_filter("float", filters::float);
    language.add_filter("string", filters::string);
    language.add_filter("bool", filters::bool);
    language.add_filter("sort", filters::sort);
    language.add_filter("unique", filters::unique);
    language.add_filter("map", filters::map);
    language.add_filter("select", filters::select);
    language.add_filter("selectattr", filters::selectattr);
    language.add_filter("reject", filters::reject);
    language.add_filter("rejectattr", filters::rejectattr);
    language.add_filter("fix", fix);
    language.add_test("defined", tests::is_defined);
    language.add_test("undefined", tests::is_undefined);
    language.add_test("none", tests::is_none);
    language.add_test("string", tests::is_string);
    language.add_test("number", tests::is_number);
    language.add_test("startingwith", tests::is_startingwith);
    language.add_test("endingwith", tests::is_endingwith);
    language.add_test("in", tests::is_in);
    language.add_test("eq", tests::is_eq);
    language.add_test("ne", tests::is_ne);
    language.add_test("gt", tests::is_gt);
    language.add_test("ge", tests::is_ge);
    language.add_test("lt", tests::is_lt);
    language.add_test("le", tests::is_le);
    language
}

/// A part of a list and a sum of lists are no lists in minijinja: a reversed empty one is true, and none is equal to a list in
/// order. Here they are lists.
fn fix(value: Value) -> Value {
    match value.kind() {
        minijinja::value::ValueKind::Iterable => Value::from(value.try_iter().unwrap().collect::<Vec<_>>()),
        _ => value,
    }
}

fn data() -> Json {
    json!({"i": 7, "z": 0, "g": -3, "f": 2.5, "h": 1e20, "u": 18_446_744_073_709_551_615_u64, "s": "Ada Lovelace", "e": "",
           "t": "a,b,,c", "q": "it's \"q\"\n", "w": "12", "b": true, "c": false, "n": null, "l": [3, 1, 2, 3], "x": ["b", "A", "a"],
           "y": [1, "1", null, true, 2.0, [1]], "d": [], "m": {"k": 1, "a": "v", "l": [1]}, "o": [{"p": 2, "v": "x"}, {"p": 1, "v": "Y"}, {"v": "z"}]})
}

/// JSON as minijinja sees it.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(yes) => Value::from(*yes),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(whole)) => Value::from(whole),
            _ => Value::from(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value_of).collect::<Vec<_>>()),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(name, value)| (name.clone(), value_of(value))))
        }
    }
}

/// It panics over some slices, like `''[::-1]`.
struct ReferencePanic;

/// What minijinja makes of it, written as text; nothing for an error.
fn theirs(environment: &Environment<'_>, text: &str) -> Result<Option<String>, ReferencePanic> {
    let work = || {
        let expression = environment.compile_expression(text).ok()?;
        let value = expression.eval(Value::from_pairs([("data", value_of(&data()))])).ok()?;
        let list = format!("{:?}", Value::from(vec![value.clone()]));
        (!value.is_undefined()).then_some(list)
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|_| ReferencePanic)
}

/// What this makes of it, written as text; nothing for an error.
fn ours(text: &str) -> Option<String> {
    // Written within a list, a text is told from a number. The `default` lets fields be missing, as minijinja does.
    let code =
        CompiledExpression::new(&format!("[{}] ~ ('' | default(''))", text.replace("|fix", "")), &EVENT)
            .ok()?;
    let (data, meter) = (data(), Meter::default());
    let said = EventFields {
        id: "",
        kind: "",
        source: "",
        time: "",
        subject: None,
        extensions: &[],
        data: (&data).into(),
    };
    let view = TemplateContext::new(said);
    let mut out = TextBuilder::default();
    code.eval(&view, &meter, |value| write_json(value, &mut out, &meter)).ok()?;
    let shown: String = serde_json::from_str(out.as_str()).unwrap();
    (shown != "[undefined]").then_some(shown)
}

fn atom() -> impl Strategy<Value = String> {
    let fields = "izgfhusetqwbcnlxydmo".chars().map(|name| format!("data.{name}")).collect::<Vec<_>>();
    prop_oneof![
        8 => prop::sample::select(fields),
        1 => Just("data.nope".to_owned()),
        2 => (-20_i64..20).prop_map(|whole| format!("({whole})")),
        1 => prop::sample::select(vec!["1.5", "0.0", "true", "none", "'a'", "''", "' x '", "[]", "{}", "{'k': 1}", "['a', 1]"])
            .prop_map(str::to_owned),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    atom().prop_recursive(4, 24, 3, |inner| {
        let operators = vec![
            "+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
        ];
        let filters = vec![
            "upper", "lower", "trim", "trim('a ')", "replace('a', '-')", "split", "split(',')", "split(' ', 1)",
            "join", "join('-')", "length", "first", "last", "min", "max", "sum", "abs", "round", "round(1)", "round(-1)",
            "round(method='ceil')", "round(1, 'floor')", "int", "int(default=3)", "int(default=1, base=16)", "float",
            "float(default=1.5)", "string", "bool", "sort", "sort(reverse=true)", "sort(attribute='p')",
            "sort(attribute='v,p')", "sort(case_sensitive=true)", "unique", "unique(attribute='v')", "map('string')", "map('upper')",
            "map(attribute='v')", "map(attribute='p', default=0)", "select", "select('gt', 1)", "select('in', data.l)", "reject",
            "reject('eq', 1)", "selectattr('p')", "selectattr('v', 'eq', 'x')", "rejectattr('p', 'defined')", "default(1)",
            "default('x', true)", "min(attribute='p')", "max(case_sensitive=true)", "sum(attribute='p')", "sum(start=5)",
            "join(',', attribute='v')",
        ];
        let tests = vec![
            "defined", "undefined", "none", "string", "number", "startingwith 'A'", "endingwith 'e'", "in data.l", "eq 1",
            "ne 'a'", "gt 2", "ge 2", "lt 2", "le 2",
        ];
        let tails = vec![".k", ".0", "[0]", "[-1]", "['a']", "[1:]", "[:2]", "[-2:]", "[::2]", "[::-1]", "[2::-1]", "[1:3]"];
        prop_oneof![
            4 => (inner.clone(), prop::sample::select(operators), inner.clone()).prop_map(|(a, op, b)| format!("(({a} {op} {b})|fix)")),
            6 => (inner.clone(), prop::sample::select(filters)).prop_map(|(a, filter)| format!("({a} | {filter})")),
            2 => (inner.clone(), prop::sample::select(tests)).prop_map(|(a, test)| format!("({a} is {test})")),
            3 => (inner.clone(), prop::sample::select(tails)).prop_map(|(a, tail)| format!("(({a}){tail}|fix)")),
            1 => inner.clone().prop_map(|a| format!("(not {a})")),
            1 => inner.clone().prop_map(|a| format!("(-{a})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("({a} < {b} < 5)")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// HUB-4: an expression yields what it yields in minijinja, whose syntax and meaning the documentation promises.
    #[test]
    fn hub_4_expressions_mean_what_they_mean_in_minijinja(text in expression()) {
        let environment = environment();
        if let Ok(theirs) = theirs(&environment, &text) {
            prop_assert_eq!(ours(&text), theirs, "{}", text);
        }
    }
}
