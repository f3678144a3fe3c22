//! How much is pending.

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{BacklogCounts, DeliverySelector};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn pending(
    session: &Session,
    whose: &DeliverySelector,
    most: u32,
) -> Result<u32, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn backlog_counts(
    session: &Session,
    services: Vec<Slug>,
    most: u32,
) -> Result<BacklogCounts, ReadError> {
    todo!()
}
