//! All raw numbers of a run, for `--json`.

use serde_json::{Map, Value, json};

use crate::harness::{Measured, Numbers};
use crate::op::MEASURED;
use crate::ratio::{Outcome, above_base};
use crate::table::{Report, word};

pub fn document(report: &Report<'_>) -> Value {
    let rows: Vec<Value> = report.measured.iter().map(|row| one(report.measured, row)).collect();
    let bytes: Vec<Value> = report
        .footprints
        .iter()
        .map(|it| {
            json!({
                "name": it.name,
                "size_of_bytes": it.inline_bytes,
                "heap_built_bytes": it.built_bytes,
                "heap_used_bytes": it.used_bytes,
            })
        })
        .collect();
    let ratios: Vec<Value> = report
        .ratios
        .iter()
        .map(|ratio| match ratio.evaluate(report.measured) {
            Outcome::Value { value, kept, against } => {
                json!({ "what": ratio.what, "ours": ratio.ours, "value": value, "ok": kept, "against": against })
            }
            Outcome::Missing(name) => json!({ "what": ratio.what, "ours": ratio.ours, "missing": name }),
        })
        .collect();
    json!({ "rows": rows, "bytes": bytes, "ratios": ratios })
}

fn one(measured: &[Measured], row: &Measured) -> Value {
    let mut value = Map::new();
    value.insert("group".to_owned(), json!(row.group.to_string()));
    value.insert("name".to_owned(), json!(row.name));
    for kind in MEASURED {
        let Some(numbers) = row.numbers(kind) else { continue };
        value.insert(word(kind).to_owned(), of_kind(numbers, above_base(measured, row, kind)));
    }
    Value::Object(value)
}

fn of_kind(numbers: &Numbers, above: Option<f64>) -> Value {
    let together: Vec<Value> = numbers
        .together
        .iter()
        .map(|round| json!({ "mops": round.mops, "core_share": round.core_share }))
        .collect();
    let two = numbers.mops_together();
    json!({
        "ns_raw": numbers.ns(),
        "ns_above_base": above,
        "ns_of_rounds": numbers.rounds,
        "allocations": numbers.allocations,
        "mops_1_thread": numbers.mops(),
        "mops_2_threads": two.map(|(mops, _)| mops),
        "scaling": numbers.scaling(),
        "both_had_a_core": two.map(|(_, on_cores)| on_cores),
        "rounds_of_2_threads": together,
    })
}
