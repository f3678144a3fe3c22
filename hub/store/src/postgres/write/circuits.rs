//! The circuits of services.

use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::port::store::CircuitCause;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn put_circuit(
        &mut self,
        _circuit: &Circuit,
        _cause: CircuitCause,
    ) -> Result<(), ApplyError> {
        Err(missing())
    }
}
