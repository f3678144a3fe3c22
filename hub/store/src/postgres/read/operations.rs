//! Bulk operations, and how far their replays are.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn operations(
    session: &Session,
    page: PageRequest,
) -> Result<Page<Operation>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn operation(
    session: &Session,
    id: OperationId,
) -> Result<Option<Operation>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn running(session: &Session) -> Result<Vec<Operation>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn failed_replay(
    session: &Session,
    operation: OperationId,
    up_to: u64,
) -> Result<Option<DeliveryId>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn untried_replays(
    session: &Session,
    operation: OperationId,
    services: &[Slug],
) -> Result<Vec<(Slug, u64)>, ReadError> {
    todo!()
}
