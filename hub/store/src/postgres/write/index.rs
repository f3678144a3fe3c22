//! The words of dead letters.
//!
//! They are made in a lane that waits for all others, as on SQLite. What they are made of does not change any more, so it is read
//! without a lock; then one statement marks those that nobody else has marked or deleted since, and stores their words.

use std::collections::BTreeMap;

use seawall_hub_core::domain::delivery::DeliveryId;

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::rows::Columns;
use crate::postgres::words;
use crate::search_text::{ANSWER_MAX, ATTEMPTS_MAX, IndexedText, TEXT_MAX};

/// An event has a payload of any size, and this much of it can be indexed.
const EVENTS: &str = "SELECT d.number, d.era, d.replay_of, d.replay_era, e.id, e.kind, e.source, e.trace,
        substring(e.payload FROM 1 FOR $2)
    FROM (SELECT delivery FROM dead_letters WHERE NOT indexed ORDER BY delivery LIMIT $1) l
    JOIN deliveries d ON d.number = l.delivery JOIN events e ON e.number = d.event ORDER BY d.number";
const ATTEMPTS: &str = "SELECT a.delivery, a.error, substring(a.answer FROM 1 FOR $3)
    FROM unnest($1::bigint[]) AS l (delivery)
    CROSS JOIN LATERAL (SELECT * FROM attempts a WHERE a.delivery = l.delivery ORDER BY a.number DESC LIMIT $2) a
    ORDER BY a.delivery, a.number DESC";
const STORE: &str = "WITH found AS MATERIALIZED (
        SELECT delivery FROM dead_letters WHERE delivery = ANY ($1) AND NOT indexed
        ORDER BY delivery FOR UPDATE SKIP LOCKED),
    marked AS (
        UPDATE dead_letters l SET indexed = true FROM found WHERE l.delivery = found.delivery RETURNING l.delivery)
    INSERT INTO letter_words (delivery, words)
    SELECT m.delivery, w.words::tsvector FROM marked m
    JOIN unnest($1::bigint[], $2::text[]) AS w (delivery, words) ON w.delivery = m.delivery";

/// The parts of a text that come from the event: those before the attempts, and the payload behind them.
struct EventText {
    text: IndexedText,
    payload: Vec<u8>,
}

impl UnitApplier<'_> {
    pub(super) async fn index(&mut self, most: u32) -> Result<(), ApplyError> {
        let mut texts = self.event_texts(most).await?;
        let numbers: Vec<i64> = texts.keys().copied().collect();
        let answer = i32::try_from(ANSWER_MAX).unwrap_or(i32::MAX);
        for row in self.rows(ATTEMPTS, &[&numbers, &i64::from(ATTEMPTS_MAX), &answer]).await? {
            let mut columns = Columns::new("attempts", &row);
            let Some(EventText { text, .. }) = texts.get_mut(&columns.integer()?) else { continue };
            text.add(columns.text_or_null()?.unwrap_or_default().as_bytes(), ANSWER_MAX);
            text.add(columns.value::<Option<&[u8]>>()?.unwrap_or_default(), ANSWER_MAX);
        }
        let words = texts.into_values().map(|EventText { mut text, payload }| {
            text.add(&payload, TEXT_MAX);
            words::vector(&text.into_text())
        });
        let words: Vec<String> = words.collect();
        self.committed.touched += usize::try_from(self.run(STORE, &[&numbers, &words]).await?).unwrap_or(0);
        Ok(())
    }

    /// Returns the names and the payloads of dead letters that are not indexed, by their numbers. Names come first, so that they
    /// are indexed however large the rest is.
    async fn event_texts(&self, most: u32) -> Result<BTreeMap<i64, EventText>, ApplyError> {
        let mut texts = BTreeMap::new();
        let payload = i32::try_from(TEXT_MAX).unwrap_or(i32::MAX);
        for row in self.rows(EVENTS, &[&i64::from(most), &payload]).await? {
            let mut columns = Columns::new("deliveries", &row);
            let (number, era) = (columns.number()?, columns.number()?);
            let original = columns.number_or_null()?.zip(columns.number_or_null()?);
            let mut text = IndexedText::new(DeliveryId::new(era, number));
            for _ in 0..4 {
                text.add(columns.text_or_null()?.unwrap_or_default().as_bytes(), TEXT_MAX);
            }
            if let Some((number, era)) = original {
                text.add(DeliveryId::new(era, number).to_string().as_bytes(), TEXT_MAX);
            }
            texts.insert(number.cast_signed(), EventText { text, payload: columns.value()? });
        }
        Ok(texts)
    }
}
