//! Errors of `sqlx` in the steps of a saga.

use seawall_dist::saga::StepError;

use crate::fault_of;

/// Makes the error of a saga's step of an error of `sqlx`, with what it means: a lost connection is attempted again, a violated
/// constraint is not. Without it a step's `sqlx::Error` is unknown to the saga, and an unknown error is final.
///
/// ```no_run
/// # async fn step(pool: &sqlx::PgPool) -> Result<(), seawall_dist::saga::StepError> {
/// use seawall_sql::{step_error, transaction};
/// let mut transaction = transaction::begin(pool).await.map_err(step_error)?;
/// // …
/// transaction.commit().await.map_err(step_error)?;
/// # Ok(()) }
/// ```
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "it is made for `map_err`")]
pub fn step_error(error: sqlx::Error) -> StepError {
    StepError::new(fault_of(&error), error.to_string())
}
