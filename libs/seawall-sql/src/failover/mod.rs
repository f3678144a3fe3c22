//! Two databases or more, asked in order.
#![doc = ""]
#![doc = include_str!("../../docs/failover.md")]

mod config;
mod executor;
mod log;
mod rows;

pub use config::{
    ACQUIRE_TIMEOUT, ATTEMPT_TIMEOUT, COOLDOWN, FAILURES, SqlFailoverBuilder, WritePolicy, pool_options,
};
pub use executor::{SqlAnswer, SqlFailover, SqlFailoverError};
pub use rows::RowCount;
