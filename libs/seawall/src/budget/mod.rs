//! How many retries all callers together may make.
#![doc = ""]
#![doc = include_str!("../../docs/budget.md")]

mod config;
mod ledger;
mod machine;
mod policy;

pub use config::{Budget, FLOOR_PER_SECOND, SHARE, TOKEN_RATIO, TOKENS, WINDOW};
pub use policy::{RetryBudget, Token};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
