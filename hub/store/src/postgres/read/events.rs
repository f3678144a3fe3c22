//! Events, one or a page of them.

use seawall_hub_core::domain::event::Event;
use seawall_hub_core::port::store::{EventFilter, Page, PageRequest};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn event(
    session: &Session,
    id: &str,
    source: Option<&str>,
) -> Result<Option<Event>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn events(
    session: &Session,
    filter: &EventFilter,
    page: PageRequest,
) -> Result<Page<Event>, ReadError> {
    todo!()
}
