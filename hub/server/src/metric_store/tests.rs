use metrics::{Label, Unit};
use serde_json::json;

use super::*;

const METADATA: Metadata<'static> = Metadata::new("", metrics::Level::INFO, None);

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}

fn described(name: &'static str, unit: Unit, meaning: &'static str) -> MetricStore {
    let numbers = MetricStore::default();
    numbers.describe_counter(name.into(), Some(unit), meaning.into());
    numbers
}

/// OBS-2: names, units, help and labels as Prometheus reads them; what is in a label can't break out of it.
#[test]
fn obs_2_the_text_is_what_prometheus_reads() {
    let numbers = described("a.b", Unit::Count, "one\ntwo \\ three");
    numbers.register_counter(&key("a.b", &[("error.type", "x\"\\\ny")]), &METADATA).increment(3);
    // The order of labels makes no other series.
    for labels in [[("b", "2"), ("a", "1")], [("a", "1"), ("b", "2")]] {
        numbers.register_gauge(&key("level", &labels), &METADATA).increment(0.5);
    }
    let expected = "# HELP a_b_total one\\ntwo \\\\ three\n# TYPE a_b_total counter\n\
                    a_b_total{error_type=\"x\\\"\\\\\\ny\"} 3\n# TYPE level gauge\nlevel{a=\"1\",b=\"2\"} 1\n";
    assert_eq!(numbers.prometheus(), expected);
    numbers.clear_gauges();
    assert!(!numbers.prometheus().contains("level"));
}

/// OBS-2: buckets hold all that is below them; the same histogram says count, sum, largest and quantiles in JSON.
#[test]
fn obs_2_histograms_are_read_in_both_forms() {
    let numbers = described("took", Unit::Seconds, "how long");
    for service in ["a", "b"] {
        let took = numbers.register_histogram(&key("took", &[("service", service)]), &METADATA);
        for millis in 1..=100 {
            took.record(f64::from(millis) / 1e3);
        }
    }
    let text = numbers.prometheus();
    for line in [
        "took_seconds_bucket{service=\"a\",le=\"0.001\"} 1",
        "took_seconds_bucket{service=\"a\",le=\"0.05\"} 50",
        "took_seconds_bucket{service=\"a\",le=\"+Inf\"} 100",
        "took_seconds_sum{service=\"a\"} 5.05",
        "took_seconds_count{service=\"b\"} 100",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let all = json!(numbers.metric("took", &[]));
    assert_eq!((&all["baseUnit"], &all["description"]), (&json!("seconds"), &json!("how long")));
    assert_eq!(all["availableTags"], json!([{"tag": "service", "values": ["a", "b"]}]));
    let value = |metric: &serde_json::Value, statistic: &str| {
        let all = metric["measurements"].as_array().unwrap();
        all.iter().find(|one| one["statistic"] == statistic).unwrap()["value"].as_f64().unwrap()
    };
    assert_eq!((value(&all, "COUNT"), value(&all, "MAX")), (200.0, 0.1));
    for (statistic, exact) in [("P50", 0.05), ("P95", 0.095), ("P99", 0.099)] {
        let found = value(&all, statistic);
        assert!((found / exact - 1.0).abs() < 0.05, "{statistic} is {found}");
    }
    let one = json!(numbers.metric("took", &[("service".into(), "a".into())]));
    assert_eq!((value(&one, "COUNT"), &one["availableTags"]), (100.0, &json!([])));
    assert_eq!(numbers.metric("took", &[("service".into(), "c".into())]), None);
    assert_eq!(numbers.metric("nothing", &[]), None);
}

/// OBS-2: labels are bounded, whoever registers; the number is not lost, only its name.
#[test]
fn obs_2_a_label_has_a_thousand_values_at_most() {
    let numbers = MetricStore::default();
    for number in 0..VALUES_MAX + 500 {
        numbers.register_counter(&key("c", &[("service", &format!("s{number}"))]), &METADATA).increment(1);
    }
    let text = numbers.prometheus();
    assert_eq!(text.lines().count(), 1 + VALUES_MAX + 1, "one line says the type, one has the others");
    assert!(text.contains("c_total{service=\"other\"} 500"), "the rest is counted together");
    numbers.register_counter(&key("c", &[("service", "s7")]), &METADATA).increment(1);
    assert!(numbers.prometheus().contains("c_total{service=\"s7\"} 2"));
}

/// OBS-2: a thousand services do not make twenty megabytes of text: histograms, which have many lines each, are told apart for the
/// first hundred and added up for the rest, and nothing of the sum is lost.
#[test]
fn obs_2_a_thousand_services_make_a_text_of_bounded_size() {
    let numbers = described("took", Unit::Seconds, "how long");
    for number in 0..VALUES_MAX {
        for outcome in ["success", "failed", "timed_out", "rejected", "abandoned"] {
            let service = format!("a-service-with-a-name-{number:04}");
            let labels = [("guard", service.as_str()), ("outcome", outcome)];
            numbers.register_histogram(&key("took", &labels), &METADATA).record(0.5);
            numbers.register_counter(&key("calls", &labels), &METADATA).increment(1);
        }
    }
    let text = numbers.prometheus();
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    let count =
        |line: &str| text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse::<u64>().ok());
    let of = |guard: &str| count(&format!("took_seconds_count{{guard=\"{guard}\",outcome=\"failed\"}}"));
    assert_eq!(of("a-service-with-a-name-0099"), Some(1));
    assert_eq!((of("a-service-with-a-name-0100"), of(OTHER)), (None, Some(900)));
    // One that has been told apart stays so, and the counters of all are there.
    let labels = [("guard", "a-service-with-a-name-0007"), ("outcome", "failed")];
    numbers.register_histogram(&key("took", &labels), &METADATA).record(0.5);
    let line = "took_seconds_count{guard=\"a-service-with-a-name-0007\",outcome=\"failed\"} 2";
    assert!(numbers.prometheus().contains(line));
    assert_eq!(text.lines().filter(|line| line.starts_with("calls_total")).count(), 5 * VALUES_MAX);
    assert_eq!(json!(numbers.metric("took", &[]))["measurements"][0]["value"], 5_001);
}

/// HUB-9: what resilience4j's dashboards ask for.
#[test]
fn hub_9_the_names_of_resilience4j_are_there_too() {
    let numbers = described("seawall.call.duration", Unit::Seconds, "");
    let call = |outcome| key("seawall.call.duration", &[("guard", "billing"), ("outcome", outcome)]);
    numbers.register_histogram(&call("success"), &METADATA).record(0.1);
    numbers.register_histogram(&call("timed_out"), &METADATA).record(0.3);
    let rejected = key("seawall.rejections", &[("guard", "billing"), ("policy", "breaker")]);
    numbers.register_counter(&rejected, &METADATA).increment(5);
    let of = |kind: &str| {
        let tags = [("name".to_owned(), "billing".to_owned()), ("kind".to_owned(), kind.to_owned())];
        json!(numbers.metric("resilience4j.circuitbreaker.calls", &tags))["measurements"][0].clone()
    };
    for (kind, count) in [("successful", 1), ("failed", 1), ("not_permitted", 5)] {
        assert_eq!(of(kind), json!({"statistic": "COUNT", "value": count}), "{kind}");
    }
    let retries = [("outcome", "delivered"), ("retried", "true"), ("service", "billing")];
    numbers.register_counter(&key("seawall.deliveries", &retries), &METADATA).increment(2);
    let retried =
        numbers.metric("resilience4j.retry.calls", &[("kind".into(), "successful_with_retry".into())]);
    assert_eq!(json!(retried)["measurements"], json!([{"statistic": "COUNT", "value": 2}]));
    assert!(numbers.names().contains(&"resilience4j.retry.calls".to_owned()));
}

/// OBS-2: every metric stands on the page, with its labels.
#[test]
fn obs_2_every_metric_is_on_the_page() {
    let page = include_str!("../../../../docs/metrics.md");
    for (name, _, _, labels, _) in seawall_hub_core::metric_names::NAMES {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| unreachable!("{name} is not on the page"));
        let listed: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        assert_eq!(row.split('|').nth(4).map(str::trim), Some(&*listed.join(", ")), "{name}");
    }
}
