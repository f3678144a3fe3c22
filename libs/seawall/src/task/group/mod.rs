//! A few tasks that are started and awaited together.
#![doc = ""]
#![doc = include_str!("../../../docs/group.md")]

mod error;
mod policy;
mod shared;

pub use error::GroupError;
pub use policy::Group;
