//! The same numbers as Spring's actuator shows them, also under names that dashboards for resilience4j ask for.

use std::collections::{BTreeMap, BTreeSet};

use metrics::Unit;
use seawall_api::{Measurement, Metric, MetricTag};
use serde_json::Number;

use super::cell::Snapshot;
use super::{Family, MetricCell, MetricStore};

type Labels = Vec<(String, String)>;

/// A name of resilience4j's, and where its numbers come from: a metric of ours, which label is called how, and which value of
/// which label is which kind.
struct Alias {
    name: &'static str,
    meaning: &'static str,
    sources: &'static [AliasSource],
}

struct AliasSource {
    metric: &'static str,
    /// The label that has the name of the circuit.
    named: &'static str,
    /// The labels of the series that are counted.
    with: &'static [(&'static str, &'static str)],
    /// The value of resilience4j's label `kind`.
    kind: &'static str,
}

const fn calls(outcome: &'static [(&'static str, &'static str)], kind: &'static str) -> AliasSource {
    AliasSource { metric: "seawall.call.duration", named: "guard", with: outcome, kind }
}

const fn deliveries(with: &'static [(&'static str, &'static str)], kind: &'static str) -> AliasSource {
    AliasSource { metric: "seawall.deliveries", named: "service", with, kind }
}

const fn gateway(with: &'static [(&'static str, &'static str)], kind: &'static str) -> AliasSource {
    AliasSource { metric: "seawall.gateway.calls", named: "service", with, kind }
}

const ALIASES: [Alias; 2] = [
    Alias {
        name: "resilience4j.circuitbreaker.calls",
        meaning: "calls by outcome; those that the circuit rejected are not_permitted",
        sources: &[
            calls(&[("outcome", "success")], "successful"),
            calls(&[("outcome", "failed")], "failed"),
            calls(&[("outcome", "exhausted")], "failed"),
            calls(&[("outcome", "budget_denied")], "failed"),
            calls(&[("outcome", "timed_out")], "failed"),
            AliasSource {
                metric: "seawall.rejections",
                named: "guard",
                with: &[("policy", "breaker")],
                kind: "not_permitted",
            },
        ],
    },
    Alias {
        name: "resilience4j.retry.calls",
        meaning: "ended deliveries and calls through the gateway, with and without retry",
        sources: &[
            deliveries(&[("outcome", "delivered"), ("retried", "false")], "successful_without_retry"),
            deliveries(&[("outcome", "delivered"), ("retried", "true")], "successful_with_retry"),
            deliveries(&[("outcome", "deadLettered"), ("retried", "false")], "failed_without_retry"),
            deliveries(&[("outcome", "deadLettered"), ("retried", "true")], "failed_with_retry"),
            gateway(&[("outcome", "success"), ("retried", "false")], "successful_without_retry"),
            gateway(&[("outcome", "success"), ("retried", "true")], "successful_with_retry"),
            gateway(&[("outcome", "failed"), ("retried", "false")], "failed_without_retry"),
            gateway(&[("outcome", "failed"), ("retried", "true")], "failed_with_retry"),
        ],
    },
];

impl MetricStore {
    /// The names that there are numbers for.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let families = self.lock();
        let own =
            families.iter().filter(|(_, family)| !family.series.is_empty()).map(|(name, _)| name.clone());
        let mut names: Vec<String> = own.chain(ALIASES.iter().map(|alias| alias.name.to_owned())).collect();
        names.sort();
        names
    }

    /// One metric: its series that have all these labels, added up. Nothing, if there is none.
    #[must_use]
    pub fn metric(&self, name: &str, tags: &[(String, String)]) -> Option<Metric> {
        let families = self.lock();
        let (unit, meaning, series) = match families.get(name).filter(|family| !family.series.is_empty()) {
            Some(family) => {
                let series =
                    family.series.iter().map(|(labels, cell)| (labels.clone(), cell.clone())).collect();
                (family.unit, family.meaning.clone(), series)
            }
            None => {
                let alias = ALIASES.iter().find(|alias| alias.name == name)?;
                let timed = alias.sources[0].metric.ends_with("duration");
                (timed.then_some(Unit::Seconds), Some(alias.meaning.to_owned()), alias.series(&families))
            }
        };
        drop(families);
        let chosen: Vec<(Labels, MetricCell)> =
            series.into_iter().filter(|(labels, _)| tags.iter().all(|tag| labels.contains(tag))).collect();
        if chosen.is_empty() && !tags.is_empty() {
            return None;
        }
        let base = match unit {
            Some(Unit::Seconds) => Some("seconds"),
            Some(Unit::Bytes) => Some("bytes"),
            _ => None,
        };
        Some(Metric {
            name: name.to_owned(),
            description: meaning,
            base_unit: base.map(ToOwned::to_owned),
            measurements: measured(&chosen, unit),
            available_tags: available(&chosen, tags),
        })
    }
}

impl Alias {
    fn series(&self, families: &BTreeMap<String, Family>) -> Vec<(Labels, MetricCell)> {
        let mut found = Vec::new();
        for AliasSource { metric, named, with, kind } in self.sources {
            for (labels, cell) in families.get(*metric).iter().flat_map(|family| &family.series) {
                let has = |name: &str, value: &str| labels.iter().any(|(own, is)| own == name && is == value);
                let Some((_, name)) = labels.iter().find(|(own, _)| own == named) else { continue };
                if with.iter().all(|(name, value)| has(name, value)) {
                    let labels = vec![("kind".into(), (*kind).into()), ("name".into(), name.clone())];
                    found.push((labels, cell.clone()));
                }
            }
        }
        found
    }
}

fn measured(series: &[(Labels, MetricCell)], unit: Option<Unit>) -> Vec<Measurement> {
    let mut times: Option<Snapshot> = None;
    let (mut counted, mut level) = (None, None);
    for (_, cell) in series {
        match cell {
            MetricCell::Counter(total) => *counted.get_or_insert(0) += total.get(),
            MetricCell::Gauge(gauge) => *level.get_or_insert(0.0) += gauge.get(),
            MetricCell::Histogram(buckets) => {
                let more = buckets.snapshot();
                match &mut times {
                    Some(times) => times.add(&more),
                    None => times = Some(more),
                }
            }
        }
    }
    let mut out = Vec::new();
    let mut say = |statistic: &str, value: Option<Number>| {
        out.push(Measurement { statistic: statistic.to_owned(), value });
    };
    if let Some(level) = level {
        say("VALUE", Number::from_f64(level));
    }
    let count = times.as_ref().map_or(0, Snapshot::count) + counted.unwrap_or(0);
    if level.is_none() {
        say("COUNT", Some(count.into()));
    }
    if let Some(times) = times {
        say(if unit == Some(Unit::Seconds) { "TOTAL_TIME" } else { "TOTAL" }, Number::from_f64(times.sum));
        say("MAX", Number::from_f64(times.max));
        for (statistic, share) in [("P50", 0.5), ("P95", 0.95), ("P99", 0.99)] {
            say(statistic, Number::from_f64(times.quantile(share)));
        }
    }
    out
}

/// By which labels it can be narrowed down further.
fn available(series: &[(Labels, MetricCell)], tags: &[(String, String)]) -> Vec<MetricTag> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in series.iter().flat_map(|(labels, _)| labels) {
        all.entry(name).or_default().insert(value);
    }
    let left = all.into_iter().filter(|(name, _)| !tags.iter().any(|(tag, _)| tag == name));
    let texts = |values: BTreeSet<&str>| values.into_iter().map(ToOwned::to_owned).collect();
    left.map(|(tag, values)| MetricTag { tag: tag.to_owned(), values: texts(values) }).collect()
}
