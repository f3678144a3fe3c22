//! Deliveries and their attempts.

use std::time::Duration;

use seawall_dist::deadletter::{Answer, Attempt};
use seawall_hub_core::domain::delivery::suspects::Suspicion;
use seawall_hub_core::domain::delivery::{DeliveryFacts, DeliveryId, Progress, StoredState};
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoredDelivery;

use super::Columns;
use crate::record::{self, UnreadableRow};

/// The columns of the delivery `d` without its request. `e` is its event, and `p` its row in `work`, `outcomes` or `progress`.
pub(in crate::postgres) const STORED: &str = "d.number, d.era, e.id, e.source, e.accepted, e.trace, d.rule, d.rule_version, \
    d.service, p.state, p.epoch, p.reason, p.due, p.accepted, p.counted, p.failures, p.panics, d.ordering, p.crashes > 0, \
    p.against > 0, d.replay_of, d.replay_era";

/// The request of the delivery `d`, and the payload of the event `e` if that is its body.
pub(in crate::postgres) const REQUEST: &str =
    r"d.request, CASE WHEN substr(d.request, 1, 1) = '\x01'::bytea THEN e.payload END";

/// Reads the columns of [`STORED`].
pub(in crate::postgres) fn stored_delivery(
    columns: &mut Columns<'_>,
) -> Result<StoredDelivery, UnreadableRow> {
    let (number, era) = (columns.number()?, columns.number()?);
    Ok(StoredDelivery {
        id: DeliveryId::new(era, number),
        event: columns.text()?,
        source: columns.text()?,
        event_accepted: columns.time()?,
        trace: columns.text_or_null()?.as_deref().and_then(TraceId::of),
        rule: (columns.slug()?, columns.number()?),
        service: columns.slug()?,
        state: columns.numbered().map(StoredState::shown)?,
        epoch: columns.number()?,
        reason: columns.numbered_or_null()?,
        due: columns.time()?,
        progress: progress(columns)?,
        order: columns.text_or_null()?,
        is_suspect: columns.value()?,
        on_probation: columns.value()?,
        replay_of: delivery_id_or_null(columns)?,
        request: Vec::new(),
        payload: bytes::Bytes::new(),
    })
}

/// Reads [`REQUEST`] into a delivery.
pub(in crate::postgres) fn request(
    columns: &mut Columns<'_>,
    delivery: &mut StoredDelivery,
) -> Result<(), UnreadableRow> {
    delivery.request = columns.value()?;
    delivery.payload = columns.value::<Option<Vec<u8>>>()?.unwrap_or_default().into();
    Ok(())
}

/// Reads [`STORED`] and [`REQUEST`].
pub(in crate::postgres) fn whole_delivery(
    columns: &mut Columns<'_>,
) -> Result<StoredDelivery, UnreadableRow> {
    let mut delivery = stored_delivery(columns)?;
    request(columns, &mut delivery)?;
    Ok(delivery)
}

/// Reads a number and an era, if they are there.
pub(in crate::postgres) fn delivery_id_or_null(
    columns: &mut Columns<'_>,
) -> Result<Option<DeliveryId>, UnreadableRow> {
    let (number, era) = (columns.number_or_null()?, columns.number_or_null()?);
    Ok(number.zip(era).map(|(number, era)| DeliveryId::new(era, number)))
}

fn progress(columns: &mut Columns<'_>) -> Result<Progress, UnreadableRow> {
    Ok(Progress {
        accepted: columns.time()?,
        counted: columns.count()?,
        failures: columns.count()?,
        panics: columns.count()?,
    })
}

/// The columns of the row `p` in `work`, `outcomes` or `progress` that transitions of the domain read or change; `d` is the
/// delivery.
pub(in crate::postgres) const FACTS: &str = "p.number, p.state, p.epoch, p.due, p.touched, p.accepted, p.counted, p.failures, \
    p.panics, p.reason, d.ordering IS NOT NULL, d.replay_of IS NOT NULL, p.crashes, p.against, p.step, p.starts";

/// Reads the columns of [`FACTS`].
pub(in crate::postgres) fn facts(columns: &mut Columns<'_>) -> Result<DeliveryFacts, UnreadableRow> {
    columns.skip();
    Ok(DeliveryFacts {
        state: columns.numbered()?,
        epoch: columns.number()?,
        due: columns.time()?,
        touched: columns.time()?,
        progress: progress(columns)?,
        reason: columns.numbered_or_null()?,
        has_order: columns.value()?,
        is_replay: columns.value()?,
        crashes: columns.count()?,
        suspicion: Suspicion {
            crashes: columns.count()?,
            step: record::step_from_number(columns.integer()?),
        },
        starts: columns.value()?,
    })
}

/// The query for the attempts of the delivery `$1`, the oldest first. One that delivered is in the row of its outcome.
pub(in crate::postgres) const ATTEMPTS: &str =
    "SELECT delivery, at, took, status, error, sent, headers, answer, number::bigint FROM attempts WHERE delivery = $1
     UNION ALL SELECT number, touched, took, status, NULL, NULL, NULL, answer, 1::bigint << 40 FROM outcomes
     WHERE number = $1 AND took IS NOT NULL ORDER BY 9";

/// Reads a row of [`ATTEMPTS`].
pub(in crate::postgres) fn attempt(columns: &mut Columns<'_>) -> Result<Attempt, UnreadableRow> {
    columns.skip();
    let (at, took) = (columns.time()?, Duration::from_micros(columns.number()?));
    let (status, error) = (columns.count_or_null()?, columns.text_or_null()?);
    let sent = columns.parsed_or_null(record::sent_from_text)?;
    let headers = columns.parsed_or_null(record::headers_from_text)?.unwrap_or_default();
    let body = columns.value::<Option<Vec<u8>>>()?.unwrap_or_default();
    Ok(Attempt { at, took, sent, error, answer: status.map(|status| Answer { status, headers, body }) })
}
