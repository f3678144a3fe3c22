//! The rows of bulk operations.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress};

use super::Columns;
use crate::record::{self, UnreadableRow, UnreadableValue};

/// The columns of an operation.
pub(in crate::postgres) const OPERATION: &str = "number, era, task, plan, filter, most, total, run, \
    why, failed_delivery, begun, skipped, tried, faltered, delivered, failed, cursor, looked, who, reason, began, changed, ended";

/// Reads the columns of [`OPERATION`].
pub(in crate::postgres) fn operation(columns: &mut Columns<'_>) -> Result<Operation, UnreadableRow> {
    let (number, era) = (columns.number()?, columns.number()?);
    Ok(Operation {
        id: OperationId::new(era, number),
        task: {
            let (task, plan): (_, Option<&str>) = (columns.integer()?, columns.value()?);
            columns.checked(record::bulk_action_from_row(task, plan))?
        },
        filter: columns.parsed(record::filter_from_text)?,
        limit: columns.number_or_null()?,
        total: columns.number()?,
        run: columns.numbered()?,
        cause: columns.text_or_null()?,
        failed_delivery: columns.parsed_or_null(|id| {
            DeliveryId::parse(id).ok_or_else(|| UnreadableValue::new("id of a delivery", id))
        })?,
        progress: OperationProgress {
            begun: columns.number()?,
            skipped: columns.number()?,
            tried: columns.number()?,
            faltered: columns.number()?,
            delivered: columns.number()?,
            failed: columns.number()?,
        },
        cursor: columns.number()?,
        exhausted: columns.value()?,
        who: columns.text()?,
        reason: columns.text_or_null()?,
        began: columns.time()?,
        changed: columns.time()?,
        ended: columns.time_or_null()?,
    })
}
