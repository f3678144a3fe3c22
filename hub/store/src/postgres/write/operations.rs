//! Changes of bulk operations.

use seawall_hub_core::domain::operation::Operation;
use seawall_hub_core::port::store::{OperationStep, OperationTransition};

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn start_operation(&mut self, _operation: &Operation) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn transition(&mut self, _transition: &OperationTransition) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn advance(&mut self, _step: &OperationStep) -> Result<(), ApplyError> {
        Err(missing())
    }
}
