//! One point, and how it is kept in few bytes.

use seawall_api::{FaultCounts, HistoryPoint};
use seawall_hub_core::domain::time::Millis;

use crate::metric_store::{CLASSES, Totals};

/// What happened between one look and the next.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Point {
    /// When it ended.
    pub(crate) at: Millis,
    /// How long it lasted.
    pub(crate) seconds: u64,
    /// Events that were accepted; nothing, if it is about one service.
    pub(crate) events: Option<u32>,
    pub(crate) sends: u32,
    pub(crate) delivered: u32,
    pub(crate) failed: u32,
    pub(crate) retried: u32,
    pub(crate) p50_ms: Option<f32>,
    pub(crate) p95_ms: Option<f32>,
    pub(crate) errors: [u32; CLASSES.len()],
}

impl Point {
    pub(crate) fn errors(&self) -> u32 {
        self.errors.iter().sum()
    }

    pub(crate) fn view(&self) -> HistoryPoint {
        let count = |class: &str| {
            let at = CLASSES.iter().position(|known| *known == class)?;
            Some(self.errors[at].into())
        };
        HistoryPoint {
            at: self.at.to_string().into(),
            seconds: self.seconds,
            events: self.events.map(Into::into),
            sends: self.sends.into(),
            delivered: self.delivered.into(),
            failed: self.failed.into(),
            retried: self.retried.into(),
            p50_ms: self.p50_ms.map(rounded),
            p95_ms: self.p95_ms.map(rounded),
            errors: FaultCounts {
                business: count("business"),
                io: count("io"),
                timeout: count("timeout"),
                protocol: count("protocol"),
                system: count("system"),
            },
        }
    }
}

/// What is known of it is no finer.
fn rounded(millis: f32) -> f64 {
    (f64::from(millis) * 100.0).round() / 100.0
}

/// The same in 40 bytes: there are many of them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PackedPoint {
    sends: u32,
    delivered: u32,
    failed: u32,
    retried: u32,
    p50: ShortNumber,
    p95: ShortNumber,
    errors: [u32; CLASSES.len()],
}

impl PackedPoint {
    pub(super) fn of(totals: &Totals) -> Self {
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let took = |share| ShortNumber::of(totals.quantile(share).map_or(0.0, |seconds| seconds * 1_000.0));
        PackedPoint {
            sends: small(totals.sends),
            delivered: small(totals.delivered),
            failed: small(totals.failed),
            retried: small(totals.retried),
            p50: took(0.5),
            p95: took(0.95),
            errors: totals.errors.map(small),
        }
    }

    pub(super) fn unpacked(self, at: Millis, seconds: u64, events: Option<u32>) -> Point {
        let PackedPoint { sends, delivered, failed, retried, p50, p95, errors } = self;
        let (p50_ms, p95_ms) = (p50.get(), p95.get());
        Point { at, seconds, events, sends, delivered, failed, retried, p50_ms, p95_ms, errors }
    }
}

/// The upper half of a number: two digits of it, which is more than a histogram knows.
#[derive(Clone, Copy, Default, Debug)]
struct ShortNumber(u16);

impl ShortNumber {
    fn of(number: f64) -> Self {
        let bits = (number as f32).to_bits();
        // Rounded, not cut off.
        ShortNumber(u16::try_from(bits.saturating_add(0x8000) >> 16).unwrap_or(u16::MAX))
    }

    /// Nothing, if it is zero: no time at all is the time of nothing.
    fn get(self) -> Option<f32> {
        (self.0 > 0).then(|| f32::from_bits(u32::from(self.0) << 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-1: a thousand services fit into 8 MB, and a time is known to two digits.
    #[test]
    fn ui_1_a_point_is_small_and_true_to_two_digits() {
        assert_eq!(size_of::<PackedPoint>(), 40);
        for millis in [0.1, 1.0, 7.3, 250.0, 12_345.0, 120_000.0] {
            let kept = f64::from(ShortNumber::of(millis).get().unwrap());
            assert!((kept - millis).abs() / millis < 0.005, "{millis} is kept as {kept}");
        }
        assert_eq!(ShortNumber::of(0.0).get(), None);
    }
}
