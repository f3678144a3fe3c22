//! A few tasks that start together and are awaited together.
#![doc = ""]
#![doc = include_str!("../../../docs/group.md")]

mod error;
mod policy;
mod shared;

pub use error::GroupError;
pub use policy::Group;
