//! What is registered, the circuits of services, and who has changed what.

use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest, RegistrySnapshot};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn registered(session: &Session) -> Result<RegistrySnapshot, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn rule_versions(
    session: &Session,
    name: &Slug,
) -> Result<Vec<Rule>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn circuit_history(
    session: &Session,
    service: &Slug,
    most: usize,
) -> Result<Vec<Circuit>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn audit(
    session: &Session,
    page: PageRequest,
) -> Result<Page<AuditEntry>, ReadError> {
    todo!()
}
