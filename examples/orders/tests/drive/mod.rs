//! Drives the service as a real process against upstreams that break as they are told. The version with other crates in
//! `../orders-peers` is driven by the same files.

pub mod core;
mod service;
mod upstream;

pub use service::{CONFIG, Service, until};
pub use upstream::{Behaviour, Upstream};

/// All upstreams of the service.
pub struct World {
    pub east: Upstream,
    pub west: Upstream,
    pub catalogue: Upstream,
    pub payments: Upstream,
}

impl World {
    /// Starts the upstreams, all of them healthy, and the service.
    pub async fn start(binary: &str) -> (World, Service) {
        let world = World {
            east: Upstream::start().await,
            west: Upstream::start().await,
            catalogue: Upstream::start().await,
            payments: Upstream::start().await,
        };
        let service = Service::start(binary, &world);
        (world, service)
    }
}
