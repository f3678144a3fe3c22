//! The order in which a process stops.

use std::fmt;
use std::time::Duration;

use crate::clock::secs;

/// The default time between "not ready" and the first phase. Load balancers need it to notice the change and to send no more
/// requests.
pub const DELAY: Duration = secs(5);

/// A phase of a shutdown. The phases run in this order, so that a part stops before the parts that it needs.
///
/// The default delay and limits add up to 29 seconds, so that the report is written before Kubernetes kills the process,
/// which it does after 30 seconds by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// Listeners stop, so that no new work comes in. The default limit is 2 s.
    Accepting,
    /// Work in progress finishes. The default limit is 10 s.
    InFlight,
    /// Loops that fetch work stop: outbox pollers, consumers, schedulers. The default limit is 4 s.
    Pollers,
    /// Loops that watch stop: saga timeouts, leases, health checks. The default limit is 2 s.
    Monitors,
    /// Connections to message brokers close. The default limit is 3 s.
    Brokers,
    /// Connections to databases and caches close. The default limit is 3 s.
    Databases,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: &'static [Phase] = &[
        Phase::Accepting,
        Phase::InFlight,
        Phase::Pollers,
        Phase::Monitors,
        Phase::Brokers,
        Phase::Databases,
    ];

    /// Returns the default time limit of the phase.
    #[must_use]
    pub const fn limit(self) -> Duration {
        match self {
            Phase::InFlight => secs(10),
            Phase::Pollers => secs(4),
            Phase::Brokers | Phase::Databases => secs(3),
            Phase::Accepting | Phase::Monitors => secs(2),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Accepting => "accepting",
            Phase::InFlight => "in flight",
            Phase::Pollers => "pollers",
            Phase::Monitors => "monitors",
            Phase::Brokers => "brokers",
            Phase::Databases => "databases",
        })
    }
}

/// How far a shutdown has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    Running,
    NotReady,
    Stopping(Phase),
    Over,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSK-6: what the defaults come to is known, and less than what orchestrators wait.
    #[test]
    fn tsk_6_the_defaults_end_before_kubernetes_ends_the_process() {
        assert!(DELAY + Phase::ALL.iter().map(|phase| phase.limit()).sum::<Duration>() < secs(30));
        assert!(Phase::ALL.is_sorted());
        assert!(Stage::Running < Stage::NotReady && Stage::NotReady < Stage::Stopping(Phase::Accepting));
        assert!(Stage::Stopping(Phase::Pollers) < Stage::Stopping(Phase::Monitors));
        assert!(Stage::Stopping(Phase::Databases) < Stage::Over);
    }
}
