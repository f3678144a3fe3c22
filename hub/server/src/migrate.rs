//! The data of a stopped hub, from its folder into a database and back.

use std::path::Path;

use seawall::Clock;
pub use seawall_hub_store::{MigrationProgress, MigrationReport, OpenError};
use seawall_hub_store::{PostgresOptions, migrate};

use crate::database::DatabaseUrl;

/// Copies the data of a folder into an empty database.
pub async fn to_database(
    folder: &Path,
    database: &DatabaseUrl,
    clock: &Clock,
    tell: &(dyn Fn(MigrationProgress) + Sync),
) -> Result<MigrationReport, OpenError> {
    migrate::to_postgres(folder, &PostgresOptions::new(database.reveal(), folder), clock, tell).await
}

/// Copies a database into a folder without one.
pub async fn to_folder(
    database: &DatabaseUrl,
    folder: &Path,
    clock: &Clock,
    tell: &(dyn Fn(MigrationProgress) + Sync),
) -> Result<MigrationReport, OpenError> {
    migrate::to_sqlite(&PostgresOptions::new(database.reveal(), folder), folder, clock, tell).await
}
