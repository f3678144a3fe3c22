//! Points over time as the lines that a chart has.

use minijinja::{Value as View, context};
use seawall_hub_core::domain::time::Millis;
use serde_json::Value;

/// The lines of what the API calls a history.
pub(super) fn lines(history: &Value) -> View {
    let points: &[Value] = history["points"].as_array().map_or(&[], Vec::as_slice);
    // A point without a value is a gap: no attempt has a latency of zero.
    let line = |name: &str| -> Vec<f64> {
        points.iter().map(|point| point[name].as_f64().unwrap_or(f64::NAN)).collect()
    };
    let at: Vec<i64> = points
        .iter()
        .filter_map(|point| Millis::from_rfc3339(point["at"].as_str()?))
        .map(|at| at.0)
        .collect();
    // The last one may have lasted less than the others.
    let seconds = |point: &Value| number(&point["seconds"]).max(1.0);
    let rate = |name: &str| -> Vec<f64> {
        points.iter().map(|point| number(&point[name]) / seconds(point)).collect()
    };
    let mut classes: Vec<(String, f64)> = Vec::new();
    let mut errors = Vec::with_capacity(points.len());
    for point in points {
        let mut sum = 0.0;
        for (class, count) in point["errors"].as_object().into_iter().flatten() {
            sum += number(count);
            match classes.iter_mut().find(|(known, _)| known == class) {
                Some((_, sum)) => *sum += number(count),
                None => classes.push((class.clone(), number(count))),
            }
        }
        errors.push(sum / seconds(point));
    }
    classes.retain(|(_, count)| *count > 0.0);
    classes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    context! {
        enough => points.len() > 1, at, events => rate("events"), sends => rate("sends"), delivered => rate("delivered"),
        retried => rate("retried"), failed => rate("failed"), errors, p50 => line("p50Ms"), p95 => line("p95Ms"), classes,
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}
