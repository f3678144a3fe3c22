//! Concurrency inside one process: work that callers share, pools of workers, groups of tasks, an orderly end.
//!
//! | you have | you want | take |
//! |---|---|---|
//! | many items, one handler | so many at once, a result for each | [`Dispatcher`] |
//! | a few different things | all of them at once, and the first error | [`Group`] |
//! | a process that is told to end | an end in order, and in time | [`Shutdown`] |

pub mod dispatch;
mod error;
pub mod group;
mod panic;
pub mod shutdown;

pub use dispatch::Dispatcher;
pub use error::TaskError;
pub use group::{Group, GroupError};
pub use panic::{Panic, keep_backtraces};
pub use shutdown::Shutdown;
