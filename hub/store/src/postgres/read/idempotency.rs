//! Keys under which something was done once.

use seawall_hub_core::port::store::IdempotencyRecord;

use super::read_one;
use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;
use crate::postgres::text::stored;

pub(in crate::postgres) async fn claimed(
    session: &Session,
    scope: &'static str,
    key: &str,
) -> Result<Option<IdempotencyRecord>, ReadError> {
    let sql = "SELECT key, fingerprint, note, at FROM once WHERE scope = $1 AND key = $2";
    let found = session.find(sql, &[&scope, &stored(key)]).await?;
    read_one("once", found.as_ref(), |columns| {
        Ok(IdempotencyRecord {
            scope,
            key: columns.text()?,
            fingerprint: columns.hash()?,
            note: columns.text()?,
            at: columns.time()?,
        })
    })
}
