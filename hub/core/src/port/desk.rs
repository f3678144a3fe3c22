//! What the dead letter desk reads.

use std::future::Future;

use bytes::Bytes;
use seawall_dist::deadletter::Attempt;

use super::store::{Kept, Page, PageAt, StoreError};
use crate::domain::delivery::{DeliveryId, State};
use crate::domain::event::Event;
use crate::domain::letter::{Fingerprint, Group, GroupFilter, LetterFilter, Standing};
use crate::domain::operation::{Operation, OperationId};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// A dead letter as it is kept, beside its delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dead {
    /// The delivery that was given up.
    pub delivery: Kept,
    /// Where its event came from.
    pub source: String,
    /// When.
    pub at: Millis,
    /// What the last try said.
    pub error: Option<String>,
    /// The last status, if there was one.
    pub status: Option<u16>,
    /// What it was last replayed as, and where that stands.
    pub replayed: Option<(DeliveryId, State, Millis)>,
    /// Where it stands.
    pub standing: Standing,
    /// Those that have failed alike.
    pub group: Fingerprint,
    /// When it was deleted, if it was.
    pub deleted: Option<Millis>,
    /// What somebody wrote down about it.
    pub note: Option<String>,
    /// The work on many that has replayed it, if one has.
    pub operation: Option<OperationId>,
    /// Whether what was sent had been changed by somebody.
    pub edited: bool,
}

/// A dead letter with all that belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WholeLetter {
    /// The dead letter.
    pub dead: Dead,
    /// Every try.
    pub attempts: Vec<Attempt>,
    /// The event that it is about.
    pub event: Event,
    /// Other deliveries of the same event, the newest first, up to a hundred.
    pub related: Vec<Kept>,
    /// The request of what it replays, if it replays something: with the event, if that is its body.
    pub before: Option<(Vec<u8>, Bytes)>,
}

/// A page of dead letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letters {
    /// The page.
    pub page: Page<Dead>,
    /// How many dead letters can't be found by their words yet.
    pub unindexed: u64,
}

/// How many dead letters a filter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// So many.
    pub count: u64,
    /// Whether that is all of them, and not only as far as somebody has counted.
    pub all: bool,
    /// How many dead letters can't be found by their words yet.
    pub unindexed: u64,
}

/// Dead letters with their events, how far somebody has looked for them, and whether there may be more.
pub type Behind = (Vec<(Dead, Event)>, u64, bool);

/// What the dead letter desk reads.
pub trait Desk {
    /// A dead letter with all that belongs to it, also if it was deleted.
    fn dead_letter(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<WholeLetter>, StoreError>> + Send;

    /// Dead letters, the newest first.
    fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageAt,
    ) -> impl Future<Output = Result<Letters, StoreError>> + Send;

    /// How many there are of them. Counts no further than `most`.
    fn count_letters(
        &self,
        filter: LetterFilter,
        most: u64,
    ) -> impl Future<Output = Result<Found, StoreError>> + Send;

    /// Dead letters for work on many, the oldest first, from behind this one on: with their events and requests, which are many
    /// bytes.
    fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        most: usize,
    ) -> impl Future<Output = Result<Behind, StoreError>> + Send;

    /// The first replay of this work that has failed at least once, among those of dead letters up to this one.
    fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> impl Future<Output = Result<Option<DeliveryId>, StoreError>> + Send;

    /// Groups of dead letters: those that have failed last come first.
    fn groups(
        &self,
        filter: GroupFilter,
        page: PageAt,
    ) -> impl Future<Output = Result<Page<Group>, StoreError>> + Send;

    /// One group.
    fn group(
        &self,
        fingerprint: Fingerprint,
    ) -> impl Future<Output = Result<Option<Group>, StoreError>> + Send;

    /// Work on many dead letters, the newest first.
    fn operations(&self, page: PageAt) -> impl Future<Output = Result<Page<Operation>, StoreError>> + Send;

    /// One such work.
    fn operation(
        &self,
        id: OperationId,
    ) -> impl Future<Output = Result<Option<Operation>, StoreError>> + Send;

    /// How many replays that such work has begun for these services have not been attempted: each service for which there are any.
    fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> impl Future<Output = Result<Vec<(Slug, u64)>, StoreError>> + Send;

    /// Such work that goes on, the oldest first.
    fn running(&self) -> impl Future<Output = Result<Vec<Operation>, StoreError>> + Send;
}
