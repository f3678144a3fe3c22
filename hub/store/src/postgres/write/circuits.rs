//! The circuits of services, with their history.

use seawall_hub_core::domain::circuit::{Circuit, CircuitState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::CircuitCause;

use super::applier::{ApplyError, UnitApplier};
use super::locks::NameKind;
use crate::postgres::text::stored;

/// The number of changes that are stored for each circuit.
const MOVES_KEPT: i64 = 200;

impl UnitApplier<'_> {
    pub(super) async fn put_circuit(&self, circuit: &Circuit, cause: CircuitCause) -> Result<(), ApplyError> {
        // What an operator commands has to be heard by all; breakers see for themselves.
        if cause == CircuitCause::Command {
            self.raise_registry().await?;
        }
        let Circuit { service, state, until, trips, reason, changed } = circuit;
        let (service, until, trips) = (service.as_str(), until.map(|until| until.0), i64::from(*trips));
        let reason = reason.as_deref().map(stored);
        let reason = reason.as_deref();
        // The last change decides, and others may add one now.
        self.lock_name(NameKind::Circuit, &[service]).await?;
        if *state == CircuitState::Open {
            // A probe has failed: the outage goes on, and is one line.
            let goes_on = self
                .run(
                    "UPDATE circuits SET until = $2, trips = $3, reason = $4, state = $5 WHERE state IN ($5, $6)
                     AND number = (SELECT max(number) FROM circuits WHERE service = $1)",
                    &[&service, &until, &trips, &reason, &state.word(), &CircuitState::HalfOpen.word()],
                )
                .await?;
            if goes_on > 0 {
                return Ok(());
            }
        }
        self.run(
            "INSERT INTO circuits (service, state, until, trips, reason, changed) VALUES ($1, $2, $3, $4, $5, $6)",
            &[&service, &state.word(), &until, &trips, &reason, &changed.0],
        )
        .await?;
        self.run(
            "DELETE FROM circuits WHERE service = $1 AND number <=
             (SELECT number FROM circuits WHERE service = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)",
            &[&service, &MOVES_KEPT],
        )
        .await
        .map(drop)
    }

    /// Deletes the history of a circuit, because its service is deleted.
    pub(super) async fn forget_circuits(&self, service: &Slug) -> Result<(), ApplyError> {
        self.lock_name(NameKind::Circuit, &[service.as_str()]).await?;
        self.run("DELETE FROM circuits WHERE service = $1", &[&service.as_str()]).await.map(drop)
    }
}
