//! Dead letters, one or a page of them.

use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::port::store::{
    DeadLetterBatch, DeadLetterDetails, DeadLetterPage, MatchCount, PageRequest,
};

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn dead_letter(
    session: &Session,
    id: DeliveryId,
) -> Result<Option<DeadLetterDetails>, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn dead_letters(
    session: &Session,
    filter: &LetterFilter,
    page: PageRequest,
) -> Result<DeadLetterPage, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn count_letters(
    session: &Session,
    filter: &LetterFilter,
    most: u64,
) -> Result<MatchCount, ReadError> {
    todo!()
}

pub(in crate::postgres) async fn letters_behind(
    session: &Session,
    filter: &LetterFilter,
    behind: u64,
    most: usize,
) -> Result<DeadLetterBatch, ReadError> {
    todo!()
}
