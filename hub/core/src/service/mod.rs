//! What the hub does: one file for each verb.

mod accept;
mod alerts;
mod audit;
mod call;
mod caught;
mod circuits;
mod content;
mod deliver;
mod desk;
mod evaluate;
mod failure;
mod gauges;
mod hub;
mod keys;
pub mod numbers;
mod pace;
mod render_pool;
mod retain;
mod rulebook;
mod rules;
mod secrets;
mod services;
mod sources;
mod watch;

pub use crate::domain::operation::Mode;
pub use accept::{Accept, Accepted, Begun, Data, Incoming, NotAccepted, sample_event};
pub use alerts::Tested;
pub use audit::{By, because, on_behalf_of};
pub use call::{Call, CallMode, Called, GATEWAY_RULE, KeptCall, NotCalled};
pub use caught::log_panics;
pub use circuits::Move;
pub use deliver::{Answered, Deliver, FRESH_MAX, InHand, Target};
pub use desk::{Again, Difference, Edit, Edited, Preview, Steering, Work, curl, differences, record};
pub use evaluate::{BACKTEST_MAX, Backtest, Evaluation};
pub use failure::{failure, last_word};
pub use gauges::{KeptStanding, Standing};
pub use hub::{Hub, Refused};
pub use keys::ADMIN;
pub use render_pool::{NotRendered, QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderPool};
pub use retain::Pruned;
pub use rulebook::{BadRule, Looked, Made, Matched, Rulebook, Tally, compile};
pub use services::{Pending, problems_of_policy};

/// The wall time now.
#[must_use]
pub fn wall_time(clock: &seawall::Clock) -> crate::domain::time::Millis {
    let since = clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crate::domain::time::Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
