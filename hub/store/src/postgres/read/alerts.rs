//! Incidents of alert rules.

use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{IncidentFilter, Page, PageRequest};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn live_incidents(session: &Session) -> Result<Vec<Incident>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn incident(
    session: &Session,
    id: &str,
) -> Result<Option<Incident>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn incidents(
    session: &Session,
    filter: &IncidentFilter,
    page: PageRequest,
) -> Result<Page<Incident>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn dead_since(
    session: &Session,
    since: Millis,
    most: u32,
) -> Result<Vec<(Slug, u32)>, ReadError> {
    todo!()
}
