//! Coordination on real servers, beside its peers. One module per part.

pub mod lock;
mod server;
