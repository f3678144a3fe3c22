//! Groups of dead letters.

use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupFilter, LetterGroup};
use seawall_hub_core::port::store::{Page, PageRequest};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn groups(
    session: &Session,
    filter: &GroupFilter,
    page: PageRequest,
) -> Result<Page<LetterGroup>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn group(
    session: &Session,
    fingerprint: Fingerprint,
) -> Result<Option<LetterGroup>, ReadError> {
    todo!()
}
