//! A pool of workers over a batch or a stream of items.
#![doc = ""]
#![doc = include_str!("../../../docs/dispatcher.md")]

mod bits;
mod config;
mod pool;
mod results;
mod wake;
mod workers;

pub use config::{Dispatcher, KEYED_BUFFER, WORKERS_MAX};
pub use results::{ItemResult, ItemStream, ResultStream};
pub use workers::{InlineWorkers, TaskWorkers, Workers};
