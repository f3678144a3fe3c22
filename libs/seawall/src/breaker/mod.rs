//! The circuit breaker: stop calling what is down, and find out gently when it is back.
//!
//! ```text
//!              enough failures                      cooldown over, a call comes
//!   CLOSED ───────────────────────────► OPEN ──────────────────────────────────► HALF-OPEN
//!   all pass                            none passes                               N probes pass
//!     ▲                                   ▲                                        │      │
//!     │                                   └──── a probe fails, hangs or panics ────┘      │
//!     └────────────────────────────────────────── M probes succeed ───────────────────────┘
//! ```
//!
//! - [`Breaker`] is the configuration, [`CircuitBreaker`] the circuit, [`Ticket`] the right to make one call.
//! - A ticket ends in exactly one [`finish`](Ticket::finish) or in being dropped, and both are one atomic step:
//!   there is no moment in which a cancelled call could lose the only probe.
//! - No state is for ever: a probe has a lease, so a lost ticket or a hung call can't wedge half-open.
//!
//! A guard does all this by itself; use a `CircuitBreaker` alone where there is no guard, for instance in code
//! without a runtime:
//!
//! ```
//! use seawall::{Breaker, breaker::Outcome, secs};
//! let breaker = Breaker::consecutive_failures(3).cooldown(secs(30)).build()?;
//! match breaker.admit() {
//!     Ok(ticket) => {
//!         let answer = std::fs::read("/etc/hostname");
//!         ticket.finish(if answer.is_ok() { Outcome::Success } else { Outcome::Failure });
//!     }
//!     Err(refused) => println!("{refused}"),
//! }
//! # Ok::<(), seawall::ConfigError>(())
//! ```

mod config;
mod machine;
mod policy;
mod snapshot;
mod ticket;
mod window;
mod word;

pub use config::{
    ABANDONED_AFTER, Breaker, CONSECUTIVE_FAILURES, COOLDOWN, MINIMUM_CALLS, PROBE_TIMEOUT, PROBES,
    SUCCESSES, Scope, Window,
};
pub use policy::{CircuitBreaker, Counts, Refused};
pub use snapshot::{Snapshot, State};
pub use ticket::{Outcome, Ticket};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
