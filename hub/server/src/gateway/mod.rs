//! The gateway: services that are called through the hub, now.

mod refusal;

pub(crate) use refusal::{Last, Refusal};
