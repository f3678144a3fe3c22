//! The order in which a process stops.

use std::fmt;
use std::time::Duration;

use crate::clock::secs;

/// How long a process that says "not ready" goes on as before, if nothing else is said: so long load balancers may take
/// to hear of it and to send nothing more.
pub const DELAY: Duration = secs(5);

/// The phases of a shutdown, in their order: what needs others stops before them.
///
/// Delay and limits come to 29 seconds in all, so that the report is written before Kubernetes, which waits for 30 unless
/// told otherwise, ends the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Listeners: no new work comes in. 2 s.
    Accepting,
    /// Work that came in before is finished. 10 s.
    InFlight,
    /// Loops that fetch work: outbox pollers, consumers, schedulers. 4 s.
    Pollers,
    /// Loops that watch: timeouts of sagas, leases, health. 2 s.
    Monitors,
    /// Connections to message brokers. 3 s.
    Brokers,
    /// Connections to databases and caches. 3 s.
    Databases,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 6] = [
        Phase::Accepting,
        Phase::InFlight,
        Phase::Pollers,
        Phase::Monitors,
        Phase::Brokers,
        Phase::Databases,
    ];

    /// How long it may take, if nothing else is said.
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
        assert!(DELAY + Phase::ALL.map(Phase::limit).iter().sum::<Duration>() < secs(30));
        assert!(Phase::ALL.is_sorted());
        assert!(Stage::Running < Stage::NotReady && Stage::NotReady < Stage::Stopping(Phase::Accepting));
        assert!(Stage::Stopping(Phase::Pollers) < Stage::Stopping(Phase::Monitors));
        assert!(Stage::Stopping(Phase::Databases) < Stage::Over);
    }
}
