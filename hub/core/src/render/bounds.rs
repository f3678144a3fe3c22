//! Templates and events that cost much: each ends within its budget and says why.

use serde_json::{Value as Json, json};

use super::expression::CompiledExpression;
use super::tests::view;
use super::*;

/// Renders one expression as a body. The answer, the steps and the bytes.
fn spent(expression: &str, data: &Json) -> (Result<String, String>, u64, usize) {
    let template = JsonTemplate::new(&json!(format!("{{{{ {expression} }}}}")), "body");
    let template = template.unwrap_or_else(|mistakes| panic!("{expression}: {}", mistakes[0]));
    let meter = Meter::default();
    let rendered = template.render(&view(data), "body", &meter).map_err(|mistake| mistake.to_string());
    assert!(meter.work() <= WORK_MAX && meter.peak_bytes() <= MEMORY_BYTES_MAX, "{expression}");
    (rendered, meter.work(), meter.peak_bytes())
}

fn numbers(count: u32) -> Json {
    (0..count).collect::<Vec<_>>().into()
}

/// PRM-8. Trap "a filter pays by the size of what it touches": these burnt a core for a minute, or asked for 160 GB.
#[test]
fn prm_8_a_costly_filter_ends_with_what_ran_out() {
    let data = json!({"l": numbers(100_000), "s": "a".repeat(400_000)});
    let (rendered, ..) = spent("data.l|select('in',data.l)|length", &data);
    let error = rendered.unwrap_err();
    assert_eq!(
        error,
        "body: `data.l|select('in',data.l)|length` needs more than 750000 steps of work, which is what one rule may spend \
         on one event; it ran out in `in` over 100000 items. Look at less of the event, or let its sender send less in one \
         event"
    );
    let error = spent("data.s|replace('a',data.s)|length", &data).0.unwrap_err();
    assert!(error.contains("needs more than 12582912 bytes of memory"), "{error}");
    assert!(error.contains("it ran out in `replace` over 400000 bytes of text"), "{error}");
}

/// PRM-8: the plausible rule with a large event that froze the hub.
#[test]
fn prm_8_a_plausible_rule_over_a_large_event_ends() {
    let items: Vec<Json> = (0..25_000).map(|at| json!({"sku": format!("sku-{at:08}")})).collect();
    let allowed: Vec<String> = (0..25_000).map(|at| format!("sku-{:08}", at + 25_000)).collect();
    let data = json!({"items": items, "allowed": allowed});
    assert!(data.to_string().len() > 800_000);
    let error = spent("data.items|selectattr('sku','in',data.allowed)|length", &data).0.unwrap_err();
    assert!(error.contains("steps of work"), "{error}");
    // A filter that can't tell is not one that does not match.
    let filter = Filter::new("data.items|selectattr('sku','in',data.allowed)|length > 0").unwrap();
    assert!(matches!(filter.judge(&view(&data), &Meter::default()), FilterResult::TooCostly(_)));
}

/// PRM-8: whatever is large is paid for by every filter, operator and test; none of them works for nothing.
#[test]
fn prm_8_every_operation_pays_by_what_it_touches() {
    let of_texts = [
        "data.s|upper",
        "data.s|lower",
        "data.s|trim",
        "data.s|trim('a')",
        "data.s|replace('a','b')",
        "data.s|split('b')",
        "data.s|split",
        "data.s|split('a', 3)",
        "data.s|split(none, 3)",
        "data.s|length",
        "data.s|list_of",
        "data.s|join",
        "data.s ~ 'x'",
        "data.s + data.s",
        "data.s * 2",
        "data.s == data.t",
        "data.s != data.t",
        "data.s < data.t",
        "data.s >= data.t",
        "'b' in data.s",
        "'b' not in data.s",
        "data.s in 'b'",
        "data.s[1:]",
        "data.s[::-1]",
        "data.s[-1]",
        "data.s is startingwith data.t",
        "data.s is endingwith data.t",
        "data.s is eq data.t",
        "data.s is lt data.t",
        "data.s|int(default=1)",
        "data.s|float(default=1)",
        "data.s|map('upper')",
        "data.s|select('eq', 'b')",
        "data.s|sort",
        "data.s|unique",
        "data.s|min",
        "[data.s, data.t]|sort",
        "[data.s, data.t]|unique",
        "[data.s, data.t]|max",
        "[data.s]|map('lower')|first",
        "{data.s: 1}[data.t]",
    ];
    let of_lists = [
        "data.l|join",
        "data.l|min",
        "data.l|max",
        "data.l|sum",
        "data.l|sort",
        "data.l|sort(reverse=true)",
        "data.l|unique",
        "data.l|map('string')",
        "data.l|map('abs')",
        "data.l|select",
        "data.l|select('gt', 3)",
        "data.l|reject('in', [1])",
        "data.l|map(attribute='x', default=1)",
        "data.o|map(attribute='n')",
        "data.o|selectattr('n')",
        "data.o|rejectattr('n', 'eq', 2)",
        "data.o|sort(attribute='n')",
        "data.o|sum(attribute='n')",
        "data.o|max(attribute='n')",
        "data.o|unique(attribute='n')",
        "data.o|join(',', attribute='n')",
        "data.l + data.l",
        "data.l * 2",
        "data.l ~ ''",
        "data.l == data.k",
        "data.l != data.k",
        "data.l < data.k",
        "data.l <= data.k",
        "-1 in data.l",
        "-1 not in data.l",
        "data.l[1:]",
        "data.l[::-1]",
        "data.l|string",
        "data.l is eq data.k",
        "data.l is ge data.k",
        "data.l is in data.k",
        "1 < 2 < data.l == data.k",
        "data.m|map('upper')",
        "data.m|first ~ data.m",
        "data.m == data.n",
        "data.m < data.n",
    ];
    let text = |bytes: usize| format!("{}b", "a".repeat(bytes));
    let list = |count: u32| {
        let fields: serde_json::Map<String, Json> =
            (0..count).map(|at| (format!("f{at:06}"), json!(at))).collect();
        let objects: Vec<Json> = (0..count).map(|at| json!({"n": at})).collect();
        json!({"l": numbers(count), "k": numbers(count), "o": objects, "m": fields, "n": fields})
    };
    for (expressions, small, large, least) in [
        (
            &of_texts[..],
            json!({"s": text(80), "t": text(80)}),
            json!({"s": text(80_000), "t": text(80_000)}),
            1_000,
        ),
        (&of_lists[..], list(10), list(10_000), 9_000),
    ] {
        for expression in expressions.iter().filter(|one| !one.contains("list_of")) {
            let count = |data: &Json| {
                let code = CompiledExpression::new(expression, &expression::EVENT)
                    .unwrap_or_else(|error| panic!("{expression}: {error}"));
                let meter = Meter::default();
                // What it yields is thrown away, so that only the operation itself is counted.
                let _ = code.eval(&view(data), &meter, |_| Ok(()));
                meter.work()
            };
            let (cheap, dear) = (count(&small), count(&large));
            assert!(dear >= cheap + least, "{expression}: {cheap} steps for a little, {dear} for much");
        }
    }
}

/// PRM-8: what makes much of little ends before it has made it.
#[test]
fn prm_8_nothing_makes_much_of_little() {
    let twice =
        |times: usize| (0..times).fold("data.s".to_owned(), |inner, _| format!("({inner} ~ {inner})"));
    let data = json!({"s": "a".repeat(1_000), "l": numbers(1_000), "n": 1_000_000_000_u64});
    for expression in [
        "'x' * data.n",
        "data.s * data.n",
        "[1] * data.n",
        "data.l * data.n",
        "data.n * 'x'",
        "[data.l] * 100000 ~ ''",
        "(data.l * 100)|map('string')|join(data.s)",
        "(data.s * 1000)|split('')|length",
        "(data.s * 20000)|length",
        "([data.s] * 100000)|join",
        "([data.s] * 100000)|map('upper')|length",
        "([data.s] * 100000)|sum(start='')",
        "(data.l * 2000)|sort|unique|length",
        "(data.l * 1000)|map('map', 'upper')|length",
        "([1.5] * 100000)|map('round', -300)|length",
        "([data.s] * 5000)|unique|length",
        &twice(6).replace("data.s", "(data.s * 300)"),
    ] {
        let error = spent(expression, &data).0.expect_err(expression);
        assert!(error.contains("needs more than") || error.contains("larger than"), "{expression}: {error}");
    }
}

/// PRM-8: an expression that is nested deeply is refused when it is written, and none overflows the stack.
#[test]
fn prm_8_deep_expressions_are_refused_or_evaluated() {
    let made = |text: String| CompiledExpression::new(&text, &expression::EVENT).map(drop);
    for deep in [
        format!("{}1", "-".repeat(4_000)),
        format!("{}1", "not ".repeat(1_000)),
        format!("{}1{}", "(".repeat(1_900), ")".repeat(1_900)),
        format!("{}1{}", "[".repeat(1_900), "]".repeat(1_900)),
        format!("1{}", " if 1".repeat(800)),
        format!("1{}", " if 1 else 1".repeat(340)),
    ] {
        assert!(made(deep.clone()).is_err(), "{}", &deep[..40]);
    }
    let data = json!({"n": 1});
    for long in [
        format!("1{}", "+1".repeat(2_000)),
        format!("''{}", "~1".repeat(2_000)),
        format!("data.n{}", "|abs".repeat(1_000)),
        format!("1{}", " and 1".repeat(600)),
        format!("1{}", "<=1".repeat(1_200)),
        format!("data{}", ".default".repeat(500)),
        format!("1{}", " if 1 else 1".repeat(120)),
        format!("{}1{}", "[".repeat(70), "]".repeat(70)),
    ] {
        made(long.clone()).unwrap();
        let _ = spent(&long, &data);
    }
}

/// PRM-8: what an ordinary rule costs is far from the limits, also of what may be done on a thread of the runtime.
#[test]
fn prm_8_an_ordinary_rule_is_cheap() {
    let items: Vec<Json> = (0..20).map(|at| json!({"sku": format!("sku-{at}"), "n": at})).collect();
    let data = json!({"id": "A-7", "total": 120.5, "items": items, "customer": {"name": "Ada"}});
    let template = json!({
        "order": "{{ data.id }}", "amount": "{{ data.total }}", "text": "Order {{ data.id }} of {{ data.customer.name }}",
        "skus": "{{ data.items | map(attribute='sku') | join(',') }}", "count": "{{ data.items | length }}",
        "speed": "{{ 'express' if data.total > 100 else 'standard' }}", "items": "{{ data.items }}",
    });
    let meter = Meter::default();
    JsonTemplate::new(&template, "body").unwrap().render(&view(&data), "body", &meter).unwrap();
    assert!(meter.work() < crate::service::QUICK_WORK_MAX / 10, "{}", meter.work());
    assert!(meter.peak_bytes() < 16 * 1024, "{}", meter.peak_bytes());
}

/// PRM-8: all expressions of a rule share one budget.
#[test]
fn prm_8_many_expressions_share_one_budget() {
    let data = json!({"l": numbers(30_000)});
    let dear = "{{ data.l|sort|last }}";
    let one = JsonTemplate::new(&json!(dear), "body").unwrap();
    assert_eq!(one.render(&view(&data), "body", &Meter::default()).unwrap(), "29999");
    let many = JsonTemplate::new(&json!({"a": [dear, dear, dear, dear, dear]}), "body").unwrap();
    let error = many.render(&view(&data), "body", &Meter::default()).unwrap_err();
    assert!(error.place.starts_with("body.a[") && error.reason.contains("steps of work"), "{error}");
}
