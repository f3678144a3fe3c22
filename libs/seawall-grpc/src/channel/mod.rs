//! The channel that obeys a service config.

mod builder;
mod methods;
mod service;

pub use builder::{
    ATTEMPTS_MAX, CALL_BUFFER_BYTES_MAX, CHANNEL_BUFFER_BYTES_MAX, ServiceConfigLayer,
    ServiceConfigLayerBuilder,
};
pub(crate) use methods::Shared;
pub use service::ConfiguredChannel;
