//! The store of idempotency keys, written once for both databases; a macro for the reason that `dead_letter` gives. Only the claim
//! differs, and is a function of each database.

/// Writes a store of idempotency keys for one database, beside a module `claim`.
macro_rules! idempotency_store {
    (
        store $name:ident on $pool:ident, $connection:ident;
        sql $sql:ident;
    ) => {
        use std::sync::Arc;
        use std::time::Duration;

        use seawall_dist::idempotency::{
            ClaimAnswer, ClaimRequest, Fingerprint, IdempotencyKey, IdempotencyStore, StoredResult,
        };
        use seawall_dist::{StoreError, StoreFuture};
        use sqlx::Row;
        use tokio::sync::Semaphore;

        use crate::fault::store_error;
        use crate::idempotency::{KeyRow, claims_max, millis, take_turn};

        /// Idempotency keys in the table `seawall_idempotency_keys`.
        #[derive(Clone, Debug)]
        pub struct $name {
            pool: $pool,
            /// Half of the pool's connections. A flood of duplicates would otherwise make renewals and results wait until their lease is
            /// over.
            claims: Arc<Semaphore>,
        }

        impl $name {
            /// Makes a store on this pool. Its schema is the migration `0002_idempotency`.
            #[must_use]
            pub fn new(pool: $pool) -> Self {
                let claims = Arc::new(Semaphore::new(claims_max(pool.options().get_max_connections())));
                $name { pool, claims }
            }

            /// Deletes at most `limit` keys that have expired, and returns their number. Call it from a scheduled job.
            pub async fn remove_expired(&self, limit: u32) -> Result<u64, StoreError> {
                let removed = sqlx::query(
                    concat!("DELETE FROM seawall_idempotency_keys WHERE (scope, key) IN (
                         SELECT scope, key FROM seawall_idempotency_keys WHERE expires_at <= ", $sql!(clock), "
                         LIMIT $1", $sql!(skip_locked), ")"),
                )
                .bind(i64::from(limit))
                .execute(&self.pool)
                .await;
                removed.map(|done| done.rows_affected()).map_err(store_error("removing expired keys"))
            }
        }

        impl IdempotencyStore for $name {
            fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
                Box::pin(async move {
                    let taken = take_turn(&self.claims, &self.pool).await;
                    let (_turn, connection) = taken.map_err(store_error("claiming an idempotency key"))?;
                    claim::claim(&self.pool, connection, key, request).await
                })
            }

            fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let done = sqlx::query(
                        concat!("UPDATE seawall_idempotency_keys
                         SET lease_until = ", $sql!(clock), " + ", $sql!(interval "$4"), ",
                             expires_at = ", $sql!(greatest), "(expires_at, ", $sql!(clock), " + ", $sql!(interval "$4"), ")
                         WHERE scope = $1 AND key = $2 AND state = 0 AND holder = $3 AND lease_until > ", $sql!(clock)),
                    )
                    .bind(key.scope())
                    .bind(key.key())
                    .bind(holder.cast_signed())
                    .bind(millis(lease))
                    .execute(&self.pool)
                    .await;
                    done.map(|done| done.rows_affected() > 0).map_err(store_error("renewing an idempotency key"))
                })
            }

            fn complete<'a>(
                &'a self,
                key: &'a IdempotencyKey,
                holder: u64,
                result: &'a StoredResult,
                ttl: Duration,
            ) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let done = sqlx::query(
                        concat!("UPDATE seawall_idempotency_keys
                         SET state = $4, result = $5, expires_at = ", $sql!(clock), " + ", $sql!(interval "$6"), "
                         WHERE scope = $1 AND key = $2 AND holder = $3 AND (state = 0 OR (state = $4 AND result = $5))"),
                    )
                    .bind(key.scope())
                    .bind(key.key())
                    .bind(holder.cast_signed())
                    .bind(i16::from(result.kind.code()))
                    .bind(&result.bytes)
                    .bind(millis(ttl))
                    .execute(&self.pool)
                    .await;
                    done.map(|done| done.rows_affected() > 0).map_err(store_error("storing a result"))
                })
            }

            fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let done = sqlx::query(
                        "DELETE FROM seawall_idempotency_keys WHERE scope = $1 AND key = $2 AND state = 0 AND holder = $3",
                    )
                    .bind(key.scope())
                    .bind(key.key())
                    .bind(holder.cast_signed())
                    .execute(&self.pool)
                    .await;
                    done.map(|done| done.rows_affected() > 0).map_err(store_error("freeing an idempotency key"))
                })
            }

            fn resolve<'a>(
                &'a self,
                key: &'a IdempotencyKey,
                result: Option<&'a StoredResult>,
            ) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let query = match result {
                        Some(result) => sqlx::query(
                            "UPDATE seawall_idempotency_keys SET state = $3, result = $4
                             WHERE scope = $1 AND key = $2 AND state = 3",
                        )
                        .bind(key.scope())
                        .bind(key.key())
                        .bind(i16::from(result.kind.code()))
                        .bind(&result.bytes),
                        None => sqlx::query(
                            "DELETE FROM seawall_idempotency_keys WHERE scope = $1 AND key = $2 AND state = 3",
                        )
                        .bind(key.scope())
                        .bind(key.key()),
                    };
                    let done = query.execute(&self.pool).await;
                    done.map(|done| done.rows_affected() > 0).map_err(store_error("resolving an idempotency key"))
                })
            }
        }

        /// Reads the row of a key.
        async fn look(
            connection: &mut $connection,
            key: &IdempotencyKey,
            fingerprint: &Fingerprint,
            holder: u64,
        ) -> Result<Option<KeyRow>, sqlx::Error> {
            let row = sqlx::query(
                concat!("SELECT state, fingerprint = $3, holder = $4, fencing_token, result,
                        ", $sql!(millis_until "lease_until"), ",
                        expires_at <= ", $sql!(clock), "
                 FROM seawall_idempotency_keys WHERE scope = $1 AND key = $2"),
            )
            .bind(key.scope())
            .bind(key.key())
            .bind(&fingerprint[..])
            .bind(holder.cast_signed())
            .fetch_optional(connection)
            .await?;
            row.map(|row| {
                Ok(KeyRow {
                    state: row.try_get(0)?,
                    same_fingerprint: row.try_get(1)?,
                    same_holder: row.try_get(2)?,
                    fencing_token: row.try_get(3)?,
                    result: row.try_get(4)?,
                    lease_left: row.try_get(5)?,
                    expired: row.try_get(6)?,
                })
            })
            .transpose()
        }
    };
}
