//! The handles of a hub. Each is what one part of the API needs, and all share the same state.

use std::sync::Arc;

use super::shared::Core;

/// The registry: services, rules, sources, keys and their secrets.
#[derive(Debug)]
pub struct RegistryHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The bridge: accepts events, and reads them and their deliveries.
#[derive(Debug)]
pub struct BridgeHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The gateway: calls services, and moves their circuits.
#[derive(Debug)]
pub struct GatewayHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The dead letters: replays and edits them, and runs bulk operations.
#[derive(Debug)]
pub struct DeadLetterHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The alerts: rules, channels, incidents and notifications.
#[derive(Debug)]
pub struct AlertHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The operations of the hub itself: backlog, gauges, retention and the audit log.
#[derive(Debug)]
pub struct OpsHandle<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// The runtime: what the process needs to open, run and stop a hub.
#[derive(Debug)]
pub struct HubRuntime<S, T> {
    pub(super) core: Arc<Core<S, T>>,
}

/// Implements the way from the shared state to a handle, and cheap clones.
macro_rules! handles {
    ($($name:ident),*) => {$(
        impl<S, T> $name<S, T> {
            pub(super) fn over(core: &Arc<Core<S, T>>) -> Self {
                $name { core: core.clone() }
            }
        }

        impl<S, T> Clone for $name<S, T> {
            fn clone(&self) -> Self {
                $name::over(&self.core)
            }
        }
    )*};
}

handles!(RegistryHandle, BridgeHandle, GatewayHandle, DeadLetterHandle, AlertHandle, OpsHandle, HubRuntime);

/// All handles of a hub.
#[derive(Debug)]
pub struct Handles<S, T> {
    pub registry: RegistryHandle<S, T>,
    pub bridge: BridgeHandle<S, T>,
    pub gateway: GatewayHandle<S, T>,
    pub dead_letters: DeadLetterHandle<S, T>,
    pub alerts: AlertHandle<S, T>,
    pub ops: OpsHandle<S, T>,
    pub runtime: HubRuntime<S, T>,
}
