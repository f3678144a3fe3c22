//! Keys under which something was done once.

use seawall_hub_core::port::store::IdempotencyRecord;

use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;

pub(in crate::postgres) async fn claimed(
    session: &Session,
    scope: &'static str,
    key: &str,
) -> Result<Option<IdempotencyRecord>, ReadError> {
    todo!()
}
