//! Locks on stores in memory.

mod broken;
mod drops;
mod handle;
mod keys;
mod lines;
mod loss;
mod redlock;
mod support;
mod telemetry;
