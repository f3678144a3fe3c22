//! How deliveries reach their peers: one adapter for each type of service.

mod http;
#[cfg(seawall_sabotage)]
mod sabotage;
pub(crate) mod scrub;
mod spelling;
mod traced;

pub(crate) use http::explained;
pub use http::{FAILURE_KEPT, HttpTransport, SUCCESS_KEPT};
pub use traced::TracedTransport;
