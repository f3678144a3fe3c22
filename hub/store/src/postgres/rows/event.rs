//! The rows of events.

use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::EventType;

use super::Columns;
use crate::record::UnreadableRow;

/// The columns of the event `e`.
pub(in crate::postgres) const EVENT: &str = "e.number, e.id, e.kind, e.source, e.payload, e.fingerprint, e.accepted, e.trace, e.considered, e.filtered";

/// Reads the columns of [`EVENT`].
pub(in crate::postgres) fn event(columns: &mut Columns<'_>) -> Result<Event, UnreadableRow> {
    columns.skip();
    Ok(Event {
        id: columns.text()?,
        kind: columns.parsed(EventType::new)?,
        source: columns.text()?,
        payload: columns.value::<Vec<u8>>()?.into(),
        fingerprint: columns.hash()?,
        accepted: columns.time()?,
        trace: columns.text_or_null()?,
        considered: columns.count()?,
        filtered: columns.count()?,
    })
}
