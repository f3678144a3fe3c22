//! The store of scheduled jobs, written once for both databases; a macro for the reason that `dead_letter` gives. Every operation
//! is one transaction of short statements.

/// Writes a store of jobs for one database.
macro_rules! job_store {
    (
        $(#[$doc:meta])*
        store $name:ident on $pool:ident, $connection:ident, $row:ident;
        begin $begin:path;
        sql $sql:ident;
    ) => {
        use std::time::Duration;

        use seawall_dist::schedule::{
            JobRun, JobState, JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd, RunState,
        };
        use seawall_dist::{Millis, StoreFuture};
        use sqlx::Row;

        use crate::duration::millis;
        use crate::fault::store_error;
        use crate::text::error_text;

        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            pool: $pool,
        }

        impl $name {
            /// Creates a store on this pool.
            #[must_use]
            pub fn new(pool: $pool) -> Self {
                $name { pool }
            }
        }

        impl JobStore for $name {
            fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
                Box::pin(async move {
                    let failed = store_error("reading a job");
                    let query = concat!("SELECT last_tick, CASE WHEN lease_until > ", $sql!(now), " THEN ", $sql!(millis "lease_until"), " END, \
                                 ", $sql!(millis_now), " FROM seawall_jobs WHERE job = $1");
                    let insert = concat!("INSERT INTO seawall_jobs (job, last_tick) VALUES ($1, ", $sql!(millis_now), ") \
                                  ON CONFLICT (job) DO NOTHING");
                    loop {
                        let row: Option<(i64, Option<i64>, i64)> =
                            sqlx::query_as(query).bind(job).fetch_optional(&self.pool).await.map_err(failed)?;
                        if let Some((last_tick, running_until, now)) = row {
                            let (last_tick, running_until) = (Millis(last_tick), running_until.map(Millis));
                            return Ok(JobState { last_tick, running_until, now: Millis(now) });
                        }
                        sqlx::query(insert).bind(job).execute(&self.pool).await.map_err(failed)?;
                    }
                })
            }

            fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
                Box::pin(async move {
                    let failed = store_error("claiming a run of a job");
                    let update = concat!("UPDATE seawall_jobs SET last_tick = $3, running_tick = $3, fence = fence + 1, \
                         lease_until = ", $sql!(later "$4"), " \
                         WHERE job = $1 AND last_tick = $2 AND (lease_until IS NULL OR lease_until <= ", $sql!(now), ") RETURNING fence");
                    let mut transaction = $begin(&self.pool).await.map_err(failed)?;
                    let fence: Option<i64> = sqlx::query_scalar(update)
                        .bind(&claim.job)
                        .bind(claim.after.0)
                        .bind(claim.tick.0)
                        .bind(millis(claim.lease))
                        .fetch_optional(&mut *transaction)
                        .await
                        .map_err(failed)?;
                    let Some(fence) = fence else {
                        let query = "SELECT 1 FROM seawall_jobs WHERE job = $1 AND last_tick = $2";
                        let query = sqlx::query(query).bind(&claim.job).bind(claim.after.0);
                        let found = query.fetch_optional(&mut *transaction).await.map_err(failed)?;
                        return Ok(if found.is_some() { RunClaimOutcome::Running } else { RunClaimOutcome::Taken });
                    };
                    let abandon = concat!("UPDATE seawall_job_runs SET state = 'abandoned', ended_at = ", $sql!(now), " WHERE job = $1 AND state = 'running'");
                    sqlx::query(abandon).bind(&claim.job).execute(&mut *transaction).await.map_err(failed)?;
                    let insert = concat!("INSERT INTO seawall_job_runs (job, tick, state, owner, missed, started_at) VALUES ($1, $2, 'running', $3, $4, ", $sql!(now), ")");
                    sqlx::query(insert)
                        .bind(&claim.job)
                        .bind(claim.tick.0)
                        .bind(&claim.owner)
                        .bind(claim.missed as i64)
                        .execute(&mut *transaction)
                        .await
                        .map_err(failed)?;
                    transaction.commit().await.map_err(failed)?;
                    Ok(RunClaimOutcome::Claimed { fence: fence as u64 })
                })
            }

            fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let failed = store_error("passing over ticks of a job");
                    let update = concat!("UPDATE seawall_jobs SET last_tick = $3 \
                         WHERE job = $1 AND last_tick = $2 AND (lease_until IS NULL OR lease_until <= ", $sql!(now), ")");
                    let mut transaction = $begin(&self.pool).await.map_err(failed)?;
                    let query = sqlx::query(update).bind(&missed.job).bind(missed.after.0).bind(missed.tick.0);
                    let done = query.execute(&mut *transaction).await.map_err(failed)?;
                    if done.rows_affected() == 0 {
                        return Ok(false);
                    }
                    insert_missed(&mut transaction, &missed.job, missed.tick, missed.missed).await.map_err(failed)?;
                    transaction.commit().await.map_err(failed)?;
                    Ok(true)
                })
            }

            fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let update = concat!("UPDATE seawall_jobs SET lease_until = ", $sql!(later "$3"), " \
                         WHERE job = $1 AND fence = $2 AND lease_until IS NOT NULL");
                    let query = sqlx::query(update).bind(job).bind(fence as i64).bind(millis(lease));
                    let done = query.execute(&self.pool).await.map_err(store_error("renewing the lease of a job"))?;
                    Ok(done.rows_affected() == 1)
                })
            }

            fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let failed = store_error("recording the end of a run");
                    let update = concat!("UPDATE seawall_jobs SET running_tick = NULL, lease_until = NULL, last_tick = ", $sql!(greatest), "(last_tick, $3) \
                         WHERE job = $1 AND fence = $2 AND lease_until IS NOT NULL");
                    let newest = end.passed.map_or(end.tick, |(tick, _)| tick);
                    let mut transaction = $begin(&self.pool).await.map_err(failed)?;
                    let query = sqlx::query(update).bind(&end.job).bind(end.fence as i64).bind(newest.0);
                    let done = query.execute(&mut *transaction).await.map_err(failed)?;
                    if done.rows_affected() == 0 {
                        return Ok(false);
                    }
                    let run = concat!("UPDATE seawall_job_runs SET state = $3, error = $4, ended_at = ", $sql!(now), " WHERE job = $1 AND tick = $2");
                    let state = if end.error.is_some() { RunState::Failed } else { RunState::Succeeded };
                    let error = end.error.as_deref().map(error_text);
                    let query = sqlx::query(run).bind(&end.job).bind(end.tick.0).bind(state.name()).bind(error);
                    query.execute(&mut *transaction).await.map_err(failed)?;
                    if let Some((tick, missed)) = end.passed {
                        insert_missed(&mut transaction, &end.job, tick, missed).await.map_err(failed)?;
                    }
                    let trim = "DELETE FROM seawall_job_runs WHERE job = $1 AND tick <= \
                         (SELECT tick FROM seawall_job_runs WHERE job = $1 ORDER BY tick DESC LIMIT 1 OFFSET $2)";
                    let query = sqlx::query(trim).bind(&end.job).bind(i64::from(end.keep));
                    query.execute(&mut *transaction).await.map_err(failed)?;
                    transaction.commit().await.map_err(failed)?;
                    Ok(true)
                })
            }

            fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
                Box::pin(async move {
                    let failed = store_error("reading the history of a job");
                    let query = concat!("SELECT tick, state, owner, missed, ", $sql!(millis "started_at"), ", \
                         ", $sql!(millis "ended_at"), ", error \
                         FROM seawall_job_runs WHERE job = $1 ORDER BY tick DESC LIMIT $2");
                    let query = sqlx::query(query).bind(job).bind(i64::from(limit));
                    let rows = query.fetch_all(&self.pool).await.map_err(failed)?;
                    rows.iter().map(|row| run(row).map_err(failed)).collect()
                })
            }
        }

        async fn insert_missed(
            connection: &mut $connection,
            job: &str,
            tick: Millis,
            missed: u64,
        ) -> Result<(), sqlx::Error> {
            let insert = concat!("INSERT INTO seawall_job_runs (job, tick, state, owner, missed, started_at, ended_at) VALUES ($1, $2, 'missed', '', $3, ", $sql!(now), ", ", $sql!(now), ")");
            sqlx::query(insert).bind(job).bind(tick.0).bind(missed as i64).execute(connection).await.map(|_| ())
        }

        fn run(row: &$row) -> Result<JobRun, sqlx::Error> {
            let state: String = row.try_get(1)?;
            let unknown =
                || sqlx::Error::Decode(format!("`{state}` is no state of a run that this version knows").into());
            Ok(JobRun {
                tick: Millis(row.try_get(0)?),
                state: RunState::of_name(&state).ok_or_else(unknown)?,
                owner: row.try_get(2)?,
                missed: row.try_get::<i64, _>(3)? as u64,
                started_at: Millis(row.try_get(4)?),
                ended_at: row.try_get::<Option<i64>, _>(5)?.map(Millis),
                error: row.try_get(6)?,
            })
        }
    };
}
