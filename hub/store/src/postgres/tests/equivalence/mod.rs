//! Every statement of `set_based.rs` against the function of the domain that it stands for.
//!
//! Each test inserts every combination of the facts, runs the change as a unit of work would, and demands for each row what the
//! function says. It then names the statements that it has proved, and fails if one of them was not run.

mod deliveries;
pub(super) mod events;
mod orders;
mod restart;

use seawall_hub_core::domain::delivery::suspects::HandlingStep;
use seawall_hub_core::domain::delivery::{DeliveryFacts, DeliveryId, Progress, StoredState};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Change, StoreError, UnitOfWork};

use super::{ERA, Names, Table, USUAL};
use crate::postgres::write::batch::{UnitShape, apply_batch, shape};
use crate::tests::{NOW, assert_rows, every_row, row};

/// The epoch of the node under test, and that of another one.
const OURS: u64 = 7;
const OTHERS: u64 = 6;

/// Applies units in one batch, and returns what became of each.
async fn apply(table: &Table, units: &[UnitOfWork], is: UnitShape) -> Vec<Result<(), StoreError>> {
    assert!(units.iter().all(|unit| shape(unit) == is));
    let units: Vec<&UnitOfWork> = units.iter().collect();
    let results = apply_batch(&table.node.session, table.node.id, is, &units).await.unwrap();
    results.into_iter().map(|result| result.map(drop)).collect()
}

fn unit(change: Change) -> UnitOfWork {
    UnitOfWork::of(change)
}
