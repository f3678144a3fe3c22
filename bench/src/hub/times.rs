//! When what happened to which event: one process sends and receives, so that one clock serves for both.

use std::cell::RefCell;
use std::time::Instant;

/// When what happened to which event, in nanoseconds since the start.
pub struct Times {
    start: Instant,
    pub sent: Column,
    pub acknowledged: Column,
    pub arrived: Column,
}

/// A time for each event; 0 is never.
#[derive(Default)]
pub struct Column(RefCell<Vec<u64>>);

impl Times {
    pub fn new() -> Self {
        let start = Instant::now();
        Times { start, sent: Column::default(), acknowledged: Column::default(), arrived: Column::default() }
    }

    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Milliseconds from one to the other, for each of these events that has both.
    pub fn between(&self, from: &Column, to: &Column, events: &[u64]) -> Spread {
        let both = events.iter().filter_map(|event| Some((from.get(*event)?, to.get(*event)?)));
        Spread::new(both.map(|(from, to)| (to as f64 - from as f64) / 1e6).collect())
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl Column {
    /// Sets a time that is not set yet; says whether it was not.
    pub fn set_first(&self, event: u64, time: u64) -> bool {
        let (mut times, event) = (self.0.borrow_mut(), event as usize);
        if times.len() <= event {
            times.resize((event + 1).next_power_of_two(), 0);
        }
        let first = times[event] == 0;
        if first {
            times[event] = time;
        }
        first
    }

    pub fn get(&self, event: u64) -> Option<u64> {
        self.0.borrow().get(event as usize).copied().filter(|time| *time > 0)
    }
}

/// Times in the order of their length.
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Spread(times)
    }

    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        self.0.get((last as f64 * percent / 100.0).round() as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_events_that_have_both_times() {
        let times = Times::new();
        for event in 0..=100 {
            times.sent.set_first(event, 1_000_000);
            times.arrived.set_first(event, 1_000_000 * (event + 1));
        }
        times.sent.set_first(200, 5);
        let events: Vec<u64> = (0..=200).collect();
        let spread = times.between(&times.sent, &times.arrived, &events);
        assert_eq!((spread.percentile(50.0), spread.percentile(99.0)), (Some(50.0), Some(99.0)));
        assert!(!times.arrived.set_first(3, 9), "the first time stays");
        assert_eq!(times.between(&times.arrived, &times.acknowledged, &events).percentile(50.0), None);
    }
}
