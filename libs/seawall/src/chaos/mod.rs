//! Trouble on purpose.
#![doc = ""]
#![doc = include_str!("../../docs/chaos.md")]

mod config;
mod machine;
mod policy;

pub use config::Chaos;
pub(crate) use machine::Trouble;
pub use policy::Injector;

#[cfg(test)]
mod tests;
