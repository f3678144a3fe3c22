//! Templates from the grammar over hostile events: each rendering ends within its CPU and its memory.

use std::time::Duration;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use seawall_hub_core::render::{Meter, RequestTemplate, RuleText, TemplateContext};
use serde_json::{Value, json};

use crate::count;

/// What one rendering may hold.
const MEMORY_MAX: usize = 32 * 1024 * 1024;
/// What one rendering may take. Under a fuzzer all code is counted and checked, which makes it slower by far.
const CPU_MAX: Duration = if cfg!(fuzzing) || cfg!(debug_assertions) {
    Duration::from_millis(1_500)
} else {
    Duration::from_millis(50)
};
/// The largest event that the hub takes.
const EVENT_MAX: usize = 1024 * 1024;

/// What a rendering has cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The rule that was rendered.
    pub rule: String,
    /// The CPU of the thread.
    pub cpu: Duration,
    /// The part of it that went into taking the event apart.
    pub event_cpu: Duration,
    /// The bytes that were held at a time, the event included.
    pub memory: usize,
    /// The steps that were counted.
    pub work: u64,
}

/// Makes a rule and an event of these bytes, and renders one with the other.
pub fn rendering(bytes: &[u8]) -> Option<Cost> {
    let mut choices = Choices(bytes);
    let data = data(&mut choices);
    let payload = Bytes::from(json!({"id": "evt-1", "type": "order.created", "data": data}).to_string());
    if payload.len() > EVENT_MAX {
        return None;
    }
    let filter = choices.chance(3).then(|| expression(&mut choices, 3));
    let mut template = || Value::from(format!("{{{{ {} }}}}", expression(&mut choices, 4)));
    let body = json!({"a": template(), "b": [template(), format!("text {} text", template().as_str()?)]});
    let rule = RuleText {
        filter: filter.as_deref(),
        method: "POST",
        path: "/",
        headers: &[],
        body: Some(&body),
        order: None,
    };
    let program = RequestTemplate::new(&rule).ok()?;
    drop(data);
    let began = cpu();
    let ((work, event_cpu), memory) = count::peak(|| {
        let meter = Meter::default();
        let view = TemplateContext::of_payload("evt-1", "order.created", "shop", &payload);
        let event_cpu = cpu().saturating_sub(began);
        if let Some(filter) = program.filter() {
            let _ = filter.judge(&view, &meter);
        }
        let _ = program.render(&view, &payload, &meter);
        (meter.work(), event_cpu)
    });
    Some(Cost {
        rule: format!("{filter:?} {body}"),
        cpu: cpu().saturating_sub(began),
        event_cpu,
        memory,
        work,
    })
}

/// The CPU that this thread has used.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// The same, and both bounds hold.
pub fn check(bytes: &[u8]) {
    if let Some(cost) = rendering(bytes) {
        assert!(cost.memory <= MEMORY_MAX, "{cost:?}");
        assert!(cost.cpu <= CPU_MAX, "{cost:?}");
    }
}

/// The bytes of a fuzzer as choices. When there are no more, the first choice is taken.
struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                usize::from(*first)
            }
            None => 0,
        }
    }

    fn pick<'c>(&mut self, of: &[&'c str]) -> &'c str {
        of[self.byte() % of.len()]
    }

    fn chance(&mut self, of: usize) -> bool {
        self.byte() % of == 1
    }
}

/// An event whose parts are as large and as odd as they may be.
fn data(choices: &mut Choices<'_>) -> Value {
    let sizes = [10, 100, 1_000, 10_000, 50_000, 100_000];
    let size = sizes[choices.byte() % sizes.len()];
    let text = match choices.byte() % 6 {
        0 => "a".repeat(4 * size),
        1 => "ab ".repeat(size),
        2 => "\u{1}'\"\\".repeat(size / 3),
        3 => "ŉΐ".repeat(size),
        4 => "9".repeat(2 * size),
        _ => ",".repeat(3 * size),
    };
    let kind = choices.byte() % 9;
    let item = |at: usize| match kind {
        0 => json!(at),
        1 => json!(0),
        2 => json!([]),
        3 => json!({"k": at}),
        4 => json!(format!("{at:x}")),
        5 => json!(at as f64 / 7.0),
        6 => json!([[0]]),
        7 => json!({"": 0}),
        _ => json!("\n"),
    };
    let list: Vec<Value> = (0..size).map(item).collect();
    let fields: serde_json::Map<String, Value> =
        (0..size / 10).map(|at| (format!("k{at}"), json!(at))).collect();
    json!({"s": text, "l": list, "m": fields, "n": size, "z": -1.5})
}

fn expression(choices: &mut Choices<'_>, depth: usize) -> String {
    const ATOMS: [&str; 12] = [
        "data.l",
        "data.s",
        "data.m",
        "data",
        "data.n",
        "data.z",
        "'a'",
        "2",
        "[data.l, data.s]",
        "{'k': data.s}",
        "1.5",
        "''",
    ];
    const FILTERS: [&str; 30] = [
        "upper",
        "lower",
        "trim",
        "trim('a,9 ')",
        "split",
        "split('')",
        "split(',')",
        "join",
        "join(data.s)",
        "length",
        "first",
        "last",
        "min",
        "max",
        "sum",
        "sum(start='')",
        "round(-30)",
        "int(default=1)",
        "float(default=1)",
        "string",
        "sort",
        "sort(reverse=true)",
        "sort(attribute='k,k,k')",
        "unique",
        "map('string')",
        "map('upper')",
        "map('split', '')",
        "map(attribute='k', default=data.s)",
        "map('map', 'string')",
        "select",
    ];
    const OPERATORS: [&str; 16] =
        ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"];
    if depth == 0 || choices.chance(8) {
        return choices.pick(&ATOMS).to_owned();
    }
    let inner = expression(choices, depth - 1);
    match choices.byte() % 10 {
        0..=2 => format!("({inner} | {})", choices.pick(&FILTERS)),
        3 | 4 => format!("({inner} {} {})", choices.pick(&OPERATORS), expression(choices, depth - 1)),
        5 => format!("({inner} | replace({}, {}))", expression(choices, 0), expression(choices, 1)),
        6 => {
            let test = choices.pick(&["in", "eq", "lt", "startingwith", "ge"]);
            format!(
                "({inner} | {}('{test}', {}))",
                choices.pick(&["select", "reject"]),
                expression(choices, 1)
            )
        }
        7 => format!(
            "({inner}{})",
            choices.pick(&["[1:]", "[::-1]", "[::2]", "[-1]", ".k", "[data.s]", "[0]"])
        ),
        8 => format!(
            "({inner} is {} {})",
            choices.pick(&["eq", "in", "lt", "endingwith"]),
            choices.pick(&ATOMS)
        ),
        _ => format!("({inner} if {} else {})", expression(choices, 1), expression(choices, 1)),
    }
}
