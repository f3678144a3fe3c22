//! Deliveries, one or a page of them.

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{DeliveryFilter, Page, PageRequest, StoredDelivery};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn delivery(
    session: &Session,
    id: DeliveryId,
) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn deliveries(
    session: &Session,
    filter: &DeliveryFilter,
    page: PageRequest,
) -> Result<Page<StoredDelivery>, ReadError> {
    todo!()
}
