//! What each service has gone through since the start: for whoever looks again and again and wants the difference.

use std::collections::{BTreeMap, HashMap};

use seawall_hub_core::metric_names;

use super::cell::{SECONDS, Snapshot};
use super::{Family, MetricCell, MetricStore};

/// The classes of what goes wrong, as guards tell them apart.
pub(crate) const CLASSES: [&str; 5] = ["business", "io", "timeout", "protocol", "system"];
/// The number of buckets of durations.
const SIZES: usize = SECONDS.len() + 1;
/// What took longer than the longest bound is taken to have taken this long at most, in seconds.
const LONGEST: f64 = 120.0;

/// What a service has gone through since the start, or in some time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    /// Requests that were sent to it: deliveries, calls, and their retries.
    pub(crate) sends: u64,
    pub(crate) delivered: u64,
    /// Deliveries that were given up.
    pub(crate) failed: u64,
    /// Deliveries that failed and will be tried again.
    pub(crate) retried: u64,
    /// Sends that failed, by class.
    pub(crate) errors: [u64; CLASSES.len()],
    /// How long it took, counted by size.
    took: [u64; SIZES],
}

impl Totals {
    /// What has come since `before`.
    pub(crate) fn since(&self, before: &Totals) -> Totals {
        let less = |now: u64, before: u64| now.saturating_sub(before);
        Totals {
            sends: less(self.sends, before.sends),
            delivered: less(self.delivered, before.delivered),
            failed: less(self.failed, before.failed),
            retried: less(self.retried, before.retried),
            errors: std::array::from_fn(|at| less(self.errors[at], before.errors[at])),
            took: std::array::from_fn(|at| less(self.took[at], before.took[at])),
        }
    }

    pub(crate) fn add(&mut self, more: &Totals) {
        self.sends += more.sends;
        self.delivered += more.delivered;
        self.failed += more.failed;
        self.retried += more.retried;
        self.errors.iter_mut().zip(more.errors).for_each(|(sum, more)| *sum += more);
        self.took.iter_mut().zip(more.took).for_each(|(sum, more)| *sum += more);
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Totals::default()
    }

    /// A share of all took no longer than this, in seconds; nothing, if there was none.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let counts: Vec<u64> = self.took.to_vec();
        let some = counts.iter().any(|count| *count > 0);
        some.then(|| Snapshot { bounds: SECONDS, counts, sum: 0.0, max: LONGEST }.quantile(share))
    }
}

/// Finds the service among the labels of a series, and its totals.
struct TotalsByService<'n>(HashMap<&'n str, Totals>);

impl<'n> TotalsByService<'n> {
    fn each(
        &mut self,
        families: &'n BTreeMap<String, Family>,
        (metric, named): (&str, &str),
        add: impl Fn(&mut Totals, &dyn Fn(&str) -> &'n str, u64, &MetricCell),
    ) {
        for (labels, cell) in families.get(metric).iter().flat_map(|family| &family.series) {
            let label = |name: &str| {
                labels.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
            };
            let count = if let MetricCell::Counter(count) = cell { count.get() } else { 0 };
            add(self.0.entry(label(named)).or_default(), &label, count, cell);
        }
    }
}

impl MetricStore {
    /// What each service has gone through since the start. There are no more of them than a label has values.
    pub(crate) fn of_services(&self) -> HashMap<String, Totals> {
        let families = self.lock();
        let mut found = TotalsByService(HashMap::new());
        found.each(&families, ("seawall.attempts", "guard"), |totals, _, count, _| totals.sends += count);
        found.each(&families, (metric_names::DELIVERIES, "service"), |totals, label, count, _| {
            match label("outcome") {
                "delivered" => totals.delivered += count,
                "deadLettered" => totals.failed += count,
                "retried" => totals.retried += count,
                _ => {}
            }
        });
        found.each(&families, ("seawall.faults", "guard"), |totals, label, count, _| {
            if let Some(class) = CLASSES.iter().position(|class| *class == label("error.type")) {
                totals.errors[class] += count;
            }
        });
        found.each(&families, ("seawall.call.duration", "guard"), |totals, label, _, cell| {
            let ended = !matches!(label("outcome"), "rejected" | "abandoned");
            if let MetricCell::Histogram(took) = cell
                && ended
            {
                took.add_to(&mut totals.took);
            }
        });
        found.0.into_iter().map(|(name, totals)| (name.to_owned(), totals)).collect()
    }

    /// How many events were accepted since the start.
    pub(crate) fn events_accepted(&self) -> u64 {
        let families = self.lock();
        let series = families.get(metric_names::EVENTS).into_iter().flat_map(|family| &family.series);
        let accepted = series
            .filter(|(labels, _)| labels.iter().any(|(name, is)| name == "outcome" && is == "accepted"));
        accepted.map(|(_, cell)| if let MetricCell::Counter(count) = cell { count.get() } else { 0 }).sum()
    }
}
