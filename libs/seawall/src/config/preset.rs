//! Usual values for a kind of peer: high traffic, development, and what must not be lost.
//!
//! The numbers are the tuning section of the hub that the flat keys come from; `max_retries: 2` there is three
//! attempts here. What they do not name is as everywhere else: jitter, budget, a breaker that counts attempts.

use super::Origin;
use super::layer::Item;
use super::schema;
use super::value;

const HIGH_TRAFFIC: &[(&str, &str)] = &[
    // More tolerance for the odd failure, and a longer time to recover.
    ("breaker.consecutive_failures", "10"),
    ("breaker.cooldown", "60s"),
    // Few retries and a short timeout, so that nobody waits in line.
    ("retry.max_attempts", "3"),
    ("retry.backoff.base", "1s"),
    ("attempt_timeout", "3s"),
];

const DEVELOPMENT: &[(&str, &str)] = &[
    // Trips quickly to show that something is wrong, and recovers quickly to try again.
    ("breaker.consecutive_failures", "3"),
    ("breaker.cooldown", "10s"),
    ("retry.max_attempts", "4"),
    ("retry.backoff.base", "1s"),
    ("attempt_timeout", "10s"),
];

const CRITICAL: &[(&str, &str)] = &[
    // Tries long before it gives anything up.
    ("retry.max_attempts", "6"),
    ("retry.backoff.base", "2s"),
    ("breaker.consecutive_failures", "20"),
    ("breaker.cooldown", "120s"),
];

/// The settings of a preset.
pub(super) fn items(name: &'static str) -> impl Iterator<Item = Item> {
    values(name).iter().filter_map(move |(path, text)| {
        let key = schema::find(path)?;
        let value = value::of_text(key.kind, text).ok()?;
        Some(Item { key, value, origin: Origin::Preset(name), written: None })
    })
}

pub(super) fn values(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "high-traffic" => HIGH_TRAFFIC,
        "development" => DEVELOPMENT,
        "critical" => CRITICAL,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_preset_can_be_read() {
        for name in schema::PRESETS {
            assert!(!values(name).is_empty());
            assert_eq!(items(name).count(), values(name).len(), "{name}");
        }
    }
}
