//! The list of metrics and the pages that explain them.

use seawall_dist::telemetry::metrics;

const PAGES: [&str; 8] = [
    include_str!("../../docs/deadletter.md"),
    include_str!("../../docs/idempotency.md"),
    include_str!("../../docs/limit.md"),
    include_str!("../../docs/lock.md"),
    include_str!("../../docs/messaging.md"),
    include_str!("../../docs/outbox.md"),
    include_str!("../../docs/saga.md"),
    include_str!("../../docs/schedule.md"),
];

/// OBS-2: every metric stands in the list once, and on a page with all its labels.
#[test]
fn obs_2_every_metric_is_on_a_page() {
    for (name, _, labels, _) in metrics() {
        assert_eq!(metrics().filter(|(other, ..)| other == name).count(), 1, "{name} is listed twice");
        let mut rows = PAGES.iter().flat_map(|page| page.lines());
        let row = rows.find(|line| line.starts_with(&format!("| `{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is on no page"));
        assert!(labels.iter().all(|label| row.contains(&format!("`{label}`"))), "{name}: {labels:?}");
    }
}
