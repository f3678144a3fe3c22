//! New events in batches.

use std::borrow::Cow;
use std::collections::HashSet;

use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, InitialState, StoredState};
use seawall_hub_core::port::store::StoreError;

use super::{ApplyError, Batch, NewEvent, ROUNDS_MAX, UnitResult, finished, pending};
use crate::postgres::rows::Columns;
use crate::postgres::text::stored;
use crate::postgres::write::events::delivery_id;
use crate::postgres::write::facts::{int, small};
use crate::postgres::write::set_based::ADD_EVENTS;

/// What is stored of these events, with the deliveries of each that are no replays.
const EXISTING: &str =
    "SELECT e.number, u.place, e.fingerprint, d.era, d.number FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (id, source, place)
     JOIN events e ON e.id = u.id AND e.source = u.source
     LEFT JOIN deliveries d ON d.event = e.number AND d.replay_of IS NULL ORDER BY u.place, d.number";

/// The columns of new events and their deliveries.
#[derive(Default)]
struct EventColumns<'u> {
    ids: Vec<Cow<'u, str>>,
    sources: Vec<Cow<'u, str>>,
    kinds: Vec<&'u str>,
    fingerprints: Vec<&'u [u8]>,
    accepted: Vec<i64>,
    considered: Vec<i32>,
    filtered: Vec<i32>,
    traces: Vec<Option<Cow<'u, str>>>,
    payloads: Vec<&'u [u8]>,
    /// The place of the event of each delivery, counted from 1.
    events: Vec<i64>,
    born: Vec<i64>,
    rules: Vec<&'u str>,
    versions: Vec<i64>,
    services: Vec<&'u str>,
    requests: Vec<&'u [u8]>,
    states: Vec<i16>,
}

impl<'u> EventColumns<'u> {
    fn push(&mut self, new: &NewEvent<'u>) {
        let NewEvent { event, deliveries } = new;
        self.ids.push(stored(&event.id));
        self.sources.push(stored(&event.source));
        self.kinds.push(event.kind.as_str());
        self.fingerprints.push(&event.fingerprint);
        self.accepted.push(event.accepted.0);
        self.considered.push(int(event.considered));
        self.filtered.push(int(event.filtered));
        self.traces.push(event.trace.as_deref().map(stored));
        self.payloads.push(&event.payload);
        let place = self.ids.len() as i64;
        for new in *deliveries {
            self.events.push(place);
            self.born.push(event.accepted.0);
            self.rules.push(new.rule.0.as_str());
            self.versions.push(new.rule.1.cast_signed());
            self.services.push(new.service.as_str());
            self.requests.push(&new.request);
            self.states.push(small(match new.initial {
                InitialState::Leased => StoredState::Leased,
                _ => StoredState::Queued,
            }));
        }
    }
}

impl Batch<'_> {
    /// Inserts events with their deliveries, apart from those that are there.
    pub(super) async fn add_events(&self, units: &[NewEvent<'_>]) -> Result<Vec<UnitResult>, ApplyError> {
        let mut results: Vec<Option<UnitResult>> = vec![None; units.len()];
        for _ in 0..ROUNDS_MAX {
            let open = pending(&results);
            if open.is_empty() {
                break;
            }
            self.insert_first(units, &open, &mut results).await?;
            let refused: Vec<usize> = open.into_iter().filter(|place| results[*place].is_none()).collect();
            self.find_existing(units, &refused, &mut results).await?;
        }
        Ok(finished(results))
    }

    /// Inserts the first unit of each event, and writes the results of those that were not there.
    async fn insert_first(
        &self,
        units: &[NewEvent<'_>],
        open: &[usize],
        results: &mut [Option<UnitResult>],
    ) -> Result<(), ApplyError> {
        let (mut columns, mut places) = (EventColumns::default(), Vec::with_capacity(open.len()));
        let mut seen = HashSet::with_capacity(open.len());
        for place in open {
            let event = units[*place].event;
            if seen.insert((&event.id, &event.source)) {
                columns.push(&units[*place]);
                places.push(*place);
            }
        }
        let c = &columns;
        let (era, epoch) = (self.node.era.cast_signed(), self.node.epoch.cast_signed());
        let row = self
            .session
            .find(
                ADD_EVENTS,
                &[
                    &c.ids,
                    &c.sources,
                    &c.kinds,
                    &c.fingerprints,
                    &c.accepted,
                    &c.considered,
                    &c.filtered,
                    &c.traces,
                    &c.payloads,
                    &c.events,
                    &c.born,
                    &c.rules,
                    &c.versions,
                    &c.services,
                    &c.requests,
                    &c.states,
                    &era,
                    &epoch,
                ],
            )
            .await?;
        let Some(row) = row else { return Ok(()) };
        let (drawn, added): (Vec<i64>, Vec<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let (numbers, is_live): (Vec<i64>, bool) = (row.try_get(2)?, row.try_get(3)?);
        let added: HashSet<i64> = added.into_iter().collect();
        for (place, _) in places.iter().zip(drawn).filter(|(_, number)| added.contains(number)) {
            results[*place] = Some(Ok(self.result()));
        }
        for ((event, number), state) in c.events.iter().zip(numbers).zip(&c.states) {
            let place = usize::try_from(event - 1).ok().and_then(|place| places.get(place));
            if let Some(Some(Ok(result))) = place.and_then(|place| results.get_mut(*place)) {
                let is_leased = is_live && *state == small(StoredState::Leased);
                let state = if is_leased { DeliveryState::Leased } else { DeliveryState::Queued };
                result.deliveries.push((self.id(number), state));
            }
        }
        Ok(())
    }

    /// Writes the results of units whose event was there. One that has been pruned meanwhile stays without.
    async fn find_existing(
        &self,
        units: &[NewEvent<'_>],
        refused: &[usize],
        results: &mut [Option<UnitResult>],
    ) -> Result<(), ApplyError> {
        if refused.is_empty() {
            return Ok(());
        }
        let ids: Vec<Cow<'_, str>> = refused.iter().map(|place| stored(&units[*place].event.id)).collect();
        let sources: Vec<Cow<'_, str>> =
            refused.iter().map(|place| stored(&units[*place].event.source)).collect();
        for row in self.session.rows(EXISTING, &[&ids, &sources]).await? {
            let mut columns = Columns::new("events", &row);
            columns.skip();
            let (place, found) = (columns.integer()?, columns.hash()?);
            let delivery: Option<DeliveryId> = match (columns.value()?, columns.value()?) {
                (Some(era), Some(number)) => Some(delivery_id(era, number)),
                _ => None,
            };
            let place = usize::try_from(place - 1).ok().and_then(|place| refused.get(place));
            let Some(result) = place.and_then(|place| results.get_mut(*place)) else { continue };
            let exists = StoreError::EventExists { fingerprint: found, deliveries: Vec::new() };
            if let Err(StoreError::EventExists { deliveries, .. }) = result.get_or_insert(Err(exists)) {
                deliveries.extend(delivery);
            }
        }
        Ok(())
    }
}
