//! What is old enough to be deleted.

use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::port::store::PrunableEvents;

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn old_events(
    session: &Session,
    limits: Limits,
    behind: u64,
) -> Result<PrunableEvents, ReadError> {
    todo!()
}
