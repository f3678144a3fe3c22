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
        self.deliver.observe(service).await;
        self.deliver.look_again();
        Ok(())
    }

    /// The guard of a service, to be looked at.
    pub fn guard(&self, service: &Slug) -> Option<seawall::Guard> {
        self.deliver.guard(service)
    }
}
