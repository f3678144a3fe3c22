//! Circuits, moved by hand.

use super::hub::{Hub, Refused};
use crate::domain::slug::Slug;
use crate::port::store::Store;
use crate::port::transport::Transport;

/// How a person moves a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Closed, and everything forgotten.
    Reset,
    /// Nothing passes until somebody says otherwise.
    ForceOpen,
    /// Everything passes until somebody says otherwise.
    ForceClosed,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Moves the circuit of a service, for this reason. It is kept, so that a restart does not forget it.
    pub async fn move_circuit(&self, service: &Slug, how: Move, reason: &str) -> Result<(), Refused> {
        let guard = self.deliver.guard(service).ok_or(Refused::Missing)?;
        let Some(breaker) = guard.breaker() else {
            return Err(Refused::Conflict(
                "its policy has no breaker, so there is no circuit to move".into(),
            ));
        };
        match how {
            Move::Reset => breaker.reset(reason),
            Move::ForceOpen => breaker.force_open(reason),
            Move::ForceClosed => breaker.force_closed(reason),
        }
        self.deliver.moved_by_person(service, reason).await;
        self.deliver.look_again();
        Ok(())
    }

    /// Why the circuit of a service stands where it does: what a person said, or what the peer did last.
    pub fn why_circuit(&self, service: &Slug) -> Option<String> {
        self.deliver.why_circuit(service)
    }

    /// The guard of a service, to be looked at.
    pub fn guard(&self, service: &Slug) -> Option<seawall::Guard> {
        self.deliver.guard(service)
    }
}
