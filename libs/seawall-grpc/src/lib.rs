//! A tonic channel that does what the standard gRPC service config asks for.
#![doc = ""]
#![doc = include_str!("../docs/grpc.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
mod channel;
mod config;
mod fault;
mod log;
mod message;
mod metrics;
mod policy;
mod replay;
mod span;
mod throttle;
mod timeout;

pub use channel::{
    ATTEMPTS_MAX, CALL_BUFFER_BYTES_MAX, CHANNEL_BUFFER_BYTES_MAX, ConfiguredChannel, ServiceConfigLayer,
    ServiceConfigLayerBuilder,
};
pub use config::{IgnoredField, MethodConfig, ServiceConfig};
pub use fault::{CallFailure, GrpcErrors, fault_of};
pub use log::LINES_PER_SECOND;
#[cfg(feature = "metrics")]
pub use metrics::{NAMES, describe};
pub use policy::{CallPolicy, HedgingPolicy, RetryPolicy, StatusCodes};
pub use throttle::RetryThrottling;
