//! Circuits, moved by hand.

use seawall::Error;
use seawall::breaker::State;

use crate::domain::slug::Slug;
use crate::port::store::Store;
use crate::port::transport::{PeerResponse, SendError, Transport};
use crate::render::RenderedRequest;
use crate::service::context::Context;
use crate::service::handles::GatewayHandle;
use crate::service::shared::ChangeError;

/// A manual change of a circuit breaker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircuitCommand {
    /// Closes the circuit and clears its statistics.
    Reset,
    /// Opens the circuit until it is changed again.
    ForceOpen,
    /// Closes the circuit until it is changed again.
    ForceClosed,
}

impl<S: Store + Clone, T: Transport> GatewayHandle<S, T> {
    /// Changes the circuit of a service, with a reason. The change is stored and survives a restart.
    pub async fn move_circuit(
        &self,
        cx: &Context,
        service: &Slug,
        how: CircuitCommand,
        reason: &str,
    ) -> Result<(), ChangeError> {
        let guard = self.core.deliver.guard(service).ok_or(ChangeError::Missing)?;
        let Some(breaker) = guard.breaker() else {
            return Err(ChangeError::Conflict(
                "its policy has no breaker, so there is no circuit to move".into(),
            ));
        };
        match how {
            CircuitCommand::Reset => breaker.reset(reason),
            CircuitCommand::ForceOpen => breaker.force_open(reason),
            CircuitCommand::ForceClosed => breaker.force_closed(reason),
        }
        self.core.deliver.store_command(cx, service, reason).await;
        self.core.deliver.wake_all();
        Ok(())
    }

    /// Returns the reason for the state of a service's circuit: what an operator wrote, or the last failure.
    #[must_use]
    pub fn why_circuit(&self, service: &Slug) -> Option<String> {
        self.core.deliver.why_circuit(service)
    }

    /// Returns the services whose circuit is not closed, and its state.
    #[must_use]
    pub fn circuits_not_closed(&self) -> Vec<(String, State)> {
        self.core.registry.troubled()
    }

    /// Returns the guard of a service, for reading.
    #[must_use]
    pub fn guard(&self, service: &Slug) -> Option<seawall::Guard> {
        self.core.deliver.guard(service)
    }

    /// Sends one test request to a service through its guard.
    pub async fn test_service(
        &self,
        name: &Slug,
        request: &RenderedRequest,
    ) -> Result<Result<PeerResponse, Error<SendError>>, ChangeError> {
        self.core.deliver.test(name, request).await.ok_or(ChangeError::Missing)
    }
}
