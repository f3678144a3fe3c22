//! Test tools of Seawall, for its own tests and for those of its users.
//!
//! - [`ManualClock`]: time that only moves when it is told to, and timers that follow it.
//! - [`Script`]: an operation that does what a script says: answer, fail, hang, panic.
//! - [`drop_at_every_poll`]: drops a future after its first poll, its second, its third, …, and looks each time
//!   whether everything was given back.
//! - [`run`]: runs a future on a manual clock, moving it to the next timer whenever nothing else can happen.
//! - [`poll_at_most`]: polls a future a number of times, and drops it.
//!
//! None of these sleeps, and none needs a runtime. For tests with real sockets, threads and processes:
//!
//! - [`peer`]: an HTTP server that fails, recovers and records what it gets.
//! - [`http`]: a client and messages on a plain socket.
//! - [`until_blocking`] and `until`: waits for a condition, up to a limit.
//!
//! More parts are behind features: `servers` starts real servers, `conformance` has the suites that every store of `seawall-dist`
//! has to pass, and `observe` collects log lines and metrics.

mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod drops;
mod executor;
pub mod http;
#[cfg(feature = "observe")]
pub mod observe;
pub mod peer;
mod script;
#[cfg(all(unix, feature = "servers"))]
pub mod servers;
mod until;

pub use clock::ManualClock;
pub use drops::{Dropped, drop_at_every_poll};
pub use executor::{poll_at_most, poll_once, run};
pub use script::{Script, Scripted, Step};
pub use until::{PATIENCE, until_blocking, until_blocking_within};
#[cfg(any(feature = "servers", feature = "conformance"))]
pub use until::{until, until_within};
