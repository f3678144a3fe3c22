//! Marks of steps, written once for both databases.

/// Writes the functions that mark steps in one database.
macro_rules! saga_marks {
    (
        $(#[$concurrency:meta])*
        marks on $pool:ident, $connection:ident;
        sql $sql:ident;
    ) => {
        use std::time::Duration;

        use seawall::Fault;
        use seawall_dist::StoreError;
        use seawall_dist::saga::{CompensationMark, StepMark};

        use crate::duration::millis;
        use crate::fault::store_error;

        /// Marks a step in the transaction of its own effect; `key` is [`StepContext::key`](seawall_dist::saga::StepContext::key).
        ///
        $(#[$concurrency])*
        ///
        /// # Errors
        /// Fails if the database does.
        pub async fn mark_step(connection: &mut $connection, key: &str) -> Result<StepMark, StoreError> {
            const ACTION: &str = "marking a step";
            let failed = store_error(ACTION);
            let insert = concat!("INSERT INTO seawall_saga_step_marks (step_key, state, updated_at) VALUES ($1, 'done', ", $sql!(now), ") ON CONFLICT (step_key) DO NOTHING");
            let done = sqlx::query(insert).bind(key).execute(&mut *connection).await.map_err(failed)?;
            if done.rows_affected() == 1 {
                return Ok(StepMark::First);
            }
            let query = "SELECT state FROM seawall_saga_step_marks WHERE step_key = $1";
            let state: Option<String> =
                sqlx::query_scalar(query).bind(key).fetch_optional(connection).await.map_err(failed)?;
            match state.as_deref() {
                Some("done") => Ok(StepMark::Repeated),
                Some(_) => Ok(StepMark::Refused),
                // It was deleted in between, or this transaction can't see it.
                None => Err(StoreError::without_cause(ACTION, Fault::protocol())),
            }
        }

        /// Marks a step as compensated in the transaction of the compensation's own effect. From then on a late call of the step is
        /// [refused](StepMark::Refused).
        ///
        /// # Errors
        /// Fails if the database does.
        pub async fn mark_compensation(
            connection: &mut $connection,
            key: &str,
        ) -> Result<CompensationMark, StoreError> {
            let failed = store_error("marking a compensation");
            let update = concat!("UPDATE seawall_saga_step_marks SET state = 'undone', updated_at = ", $sql!(now), " WHERE step_key = $1 AND state = 'done'");
            let insert = concat!("INSERT INTO seawall_saga_step_marks (step_key, state, updated_at) VALUES ($1, 'undone', ", $sql!(now), ") ON CONFLICT (step_key) DO NOTHING");
            // The step may commit between the update and the insert, which then finds its mark; so the update comes twice.
            for statement in [update, insert, update] {
                let done = sqlx::query(statement).bind(key).execute(&mut *connection).await.map_err(failed)?;
                if done.rows_affected() == 1 {
                    let inserted = statement == insert;
                    return Ok(if inserted { CompensationMark::NothingToUndo } else { CompensationMark::Undo });
                }
            }
            Ok(CompensationMark::Repeated)
        }

        /// Deletes up to `limit` marks that are older than `age`. Keep them for longer than any call may be late.
        ///
        /// # Errors
        /// Fails if the database does.
        pub async fn clean_up_marks(pool: &$pool, age: Duration, limit: u32) -> Result<u64, StoreError> {
            let delete = concat!("DELETE FROM seawall_saga_step_marks WHERE step_key IN (SELECT step_key FROM seawall_saga_step_marks \
                 WHERE updated_at <= ", $sql!(earlier "$1"), " LIMIT $2", $sql!(skip_locked), ")");
            let query = sqlx::query(delete).bind(millis(age)).bind(i64::from(limit));
            query.execute(pool).await.map_err(store_error("deleting old marks")).map(|done| done.rows_affected())
        }
    };
}
