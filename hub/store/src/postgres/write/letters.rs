//! Changes of dead letters.

use seawall_hub_core::domain::dead_letter::FailureSummary;
use seawall_hub_core::domain::delivery::Disposition;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Annotation, LetterMove, ReplayChange};

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn add_dead_letter(
        &mut self,
        _number: i64,
        _at: Millis,
        _failure: Option<&FailureSummary>,
        _attempt_number: u32,
    ) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn replay(&mut self, _replay: &ReplayChange) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn replay_tried(
        &mut self,
        _replay: i64,
        _attempt_number: u32,
        _disposition: &Disposition,
    ) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn move_letter(&mut self, _moved: &LetterMove) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn forget(&mut self, _number: i64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn note(&mut self, _note: &Annotation) -> Result<(), ApplyError> {
        Err(missing())
    }
}
