//! The gateway: calls whose caller waits for the response, and the circuits of services.

pub(in crate::service) mod call;
mod circuits;

pub use call::{CallError, CallMode, CallOutcome, GATEWAY_RULE, GatewayCall, QueuedCall};
pub use circuits::CircuitCommand;

use super::handles::GatewayHandle;
use crate::domain::circuit::Circuit;
use crate::domain::slug::Slug;
use crate::port::store::{RegistryReads, StoreError};

impl<S: RegistryReads, T> GatewayHandle<S, T> {
    /// Lists the changes of a service's circuit, the newest first.
    pub async fn circuit_history(&self, service: &Slug, limit: usize) -> Result<Vec<Circuit>, StoreError> {
        self.core.store.circuit_history(service, limit).await
    }
}
