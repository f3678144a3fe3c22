//! Test tools of Seawall, for its own tests and for those of its users.
//!
//! - [`ManualClock`]: time that only moves when it is told to, and timers that follow it.
//! - [`Script`]: an operation that does what a script says: answer, fail, hang, panic.
//! - [`drop_at_every_poll`]: drops a future after its first poll, its second, its third, …, and looks each time
//!   whether everything was given back.
//! - [`run`]: runs a future on a manual clock, moving it to the next timer whenever nothing else can happen.
//!
//! None of these sleeps, and none needs a runtime.
//!
//! More parts are behind features: `servers` starts real servers, `conformance` has the suites that every store of `seawall-dist`
//! has to pass, and `observe` collects log lines and metrics.

mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod drops;
mod executor;
#[cfg(feature = "observe")]
pub mod observe;
mod script;
#[cfg(all(unix, feature = "servers"))]
pub mod servers;

pub use clock::ManualClock;
pub use drops::{Dropped, drop_at_every_poll};
pub use executor::{poll_once, run};
pub use script::{Script, Scripted, Step};
