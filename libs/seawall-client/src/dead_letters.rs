//! Dead letters and their groups.

use seawall_api::{
    BulkInput, BulkResult, BulkTask, DeadLetter, DeadLetterDeleted, DeadLetterGroup, DeadLetterGroupPage,
    DeadLetterGroupWithSample, DeadLetterPage, DeadLetterPurged, DeadLetterQuery, DeadLetterWithEvidence,
    EditInput, EditResult, ExportQuery, GroupQuery, GroupStateInput, NoteInput, PurgeInput, ReasonInput,
    ReplayGroupInput, ReplayInput, ReplayManyInput, ReplayResult,
};
use seawall_http::Method;

use crate::call::ApiCall;
use crate::client::Client;
use crate::error::ClientError;
use crate::export::LetterStream;
use crate::path::at;

const DEAD_LETTERS: &str = "/api/v1/bridge/deadLetters";
const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";

impl Client {
    /// The deliveries that were given up.
    #[must_use]
    pub fn dead_letters(&self) -> DeadLettersApi<'_> {
        DeadLettersApi(self)
    }

    /// The groups of dead letters with the same failure.
    #[must_use]
    pub fn dead_letter_groups(&self) -> GroupsApi<'_> {
        GroupsApi(self)
    }
}

/// Requests about dead letters.
#[derive(Clone, Copy, Debug)]
pub struct DeadLettersApi<'c>(pub(crate) &'c Client);

impl DeadLettersApi<'_> {
    /// Lists dead letters, newest first.
    pub fn list(self, query: &DeadLetterQuery) -> ApiCall<DeadLetterPage> {
        ApiCall::get(self.0, DEAD_LETTERS).query(query)
    }

    /// Reads a dead letter with all that is known of it.
    pub fn get(self, id: &str) -> ApiCall<DeadLetterWithEvidence> {
        ApiCall::get(self.0, at(DEAD_LETTERS, id, ""))
    }

    /// Sets its note.
    pub fn note(self, id: &str, note: &NoteInput) -> ApiCall<DeadLetter> {
        ApiCall::new(self.0, Method::PATCH, at(DEAD_LETTERS, id, "")).json(note).idempotent()
    }

    /// Replays it as a new delivery. The request has an idempotency key.
    pub fn replay(self, id: &str, input: &ReplayInput) -> ApiCall<ReplayResult> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":replay")).json(input).keyed()
    }

    /// Replays an edited copy. The request has an idempotency key.
    pub fn edit(self, id: &str, input: &EditInput) -> ApiCall<EditResult> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":edit")).json(input).keyed()
    }

    /// Parks it, so that bulk replays skip it.
    pub fn park(self, id: &str, reason: &ReasonInput) -> ApiCall<DeadLetter> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":park")).json(reason)
    }

    /// Reopens a parked one.
    pub fn unpark(self, id: &str, reason: &ReasonInput) -> ApiCall<DeadLetter> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":unpark")).json(reason)
    }

    /// Restores a deleted one.
    pub fn restore(self, id: &str, reason: &ReasonInput) -> ApiCall<DeadLetter> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":restore")).json(reason)
    }

    /// Deletes it; it can be restored until its retention ends.
    pub fn delete(self, id: &str) -> ApiCall<DeadLetterDeleted> {
        ApiCall::delete(self.0, at(DEAD_LETTERS, id, ""))
    }

    /// Deletes it permanently, with all evidence.
    pub fn purge(self, id: &str, reason: &ReasonInput) -> ApiCall<DeadLetterPurged> {
        ApiCall::post(self.0, at(DEAD_LETTERS, id, ":purge")).json(reason)
    }

    /// Replays many as an operation. The request has an idempotency key.
    pub fn replay_many(self, input: &ReplayManyInput) -> ApiCall<BulkResult> {
        ApiCall::post(self.0, format!("{DEAD_LETTERS}:replay")).json(input).keyed()
    }

    /// Parks, unparks, deletes or restores many as an operation. The request has an idempotency key.
    pub fn move_many(self, task: &BulkTask, input: &BulkInput) -> ApiCall<BulkResult> {
        ApiCall::post(self.0, format!("{DEAD_LETTERS}:{task}")).json(input).keyed()
    }

    /// Deletes many permanently as an operation; without `force`, only counts them. The request has an idempotency key.
    pub fn purge_many(self, input: &PurgeInput) -> ApiCall<BulkResult> {
        ApiCall::post(self.0, format!("{DEAD_LETTERS}:purge")).json(input).keyed()
    }

    /// Streams dead letters with all evidence, newest first.
    pub async fn export(self, query: &ExportQuery) -> Result<LetterStream, ClientError> {
        LetterStream::open(ApiCall::get(self.0, format!("{DEAD_LETTERS}:export")).query(query)).await
    }
}

/// Requests about groups of dead letters.
#[derive(Clone, Copy, Debug)]
pub struct GroupsApi<'c>(pub(crate) &'c Client);

impl GroupsApi<'_> {
    /// Lists groups, by their latest failure, newest first.
    pub fn list(self, query: &GroupQuery) -> ApiCall<DeadLetterGroupPage> {
        ApiCall::get(self.0, GROUPS).query(query)
    }

    /// Reads a group with one of its dead letters.
    pub fn get(self, fingerprint: &str) -> ApiCall<DeadLetterGroupWithSample> {
        ApiCall::get(self.0, at(GROUPS, fingerprint, ""))
    }

    /// Sets its note.
    pub fn note(self, fingerprint: &str, note: &NoteInput) -> ApiCall<DeadLetterGroup> {
        ApiCall::new(self.0, Method::PATCH, at(GROUPS, fingerprint, "")).json(note).idempotent()
    }

    /// Acknowledges it.
    pub fn acknowledge(self, fingerprint: &str, input: &GroupStateInput) -> ApiCall<DeadLetterGroup> {
        ApiCall::post(self.0, at(GROUPS, fingerprint, ":acknowledge")).json(input).idempotent()
    }

    /// Resolves it; its next dead letter reopens it.
    pub fn resolve(self, fingerprint: &str, input: &GroupStateInput) -> ApiCall<DeadLetterGroup> {
        ApiCall::post(self.0, at(GROUPS, fingerprint, ":resolve")).json(input).idempotent()
    }

    /// Reopens it.
    pub fn reopen(self, fingerprint: &str, input: &GroupStateInput) -> ApiCall<DeadLetterGroup> {
        ApiCall::post(self.0, at(GROUPS, fingerprint, ":reopen")).json(input).idempotent()
    }

    /// Replays its open dead letters as an operation. The request has an idempotency key.
    pub fn replay(self, fingerprint: &str, input: &ReplayGroupInput) -> ApiCall<BulkResult> {
        ApiCall::post(self.0, at(GROUPS, fingerprint, ":replay")).json(input).keyed()
    }
}
