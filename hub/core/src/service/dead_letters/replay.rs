//! What operators do with one dead letter or one group: replay, move, annotate, export.

use seawall_dist::deadletter::{LetterFault, Origin, Record};
use sha2::{Digest, Sha256};
use tracing::field::display;
use tracing::info;

use super::rebuild::rebuild;
use crate::domain::dead_letter::{Fingerprint, GroupState};
use crate::domain::delivery::{DeliveryId, DeliveryState};
use crate::domain::operation::ReplayMode;
use crate::port::store::{
    Annotation, Change, CommitResult, DeadLetterDetails, IdempotencyRecord, LetterAction, LetterMove,
    ReplayChange, Store, StoreError,
};
use crate::port::transport::Transport;
use crate::render::RenderedRequest;
use crate::service::context::Context;
use crate::service::handles::DeadLetterHandle;
use crate::service::shared::ChangeError;

/// A request to replay one dead letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayRequest {
    pub mode: ReplayMode,
    /// Whether a dead letter that was replayed before may be replayed once more.
    pub again: bool,
    /// The idempotency key of the request.
    pub key: Option<String>,
}

/// The maximum length of a note in characters.
const NOTE_MAX: usize = 4_000;

impl<S: Store + Clone, T: Transport> DeadLetterHandle<S, T> {
    /// Replays a dead letter as a new delivery that is linked to it, with fresh attempts. It obeys circuit, limits and order like
    /// any other.
    pub async fn replay(
        &self,
        cx: &Context,
        letter: &DeadLetterDetails,
        replay: &ReplayRequest,
    ) -> Result<DeliveryId, ChangeError> {
        let DeadLetterDetails { dead, event, .. } = letter;
        let id = dead.delivery.id;
        let new = rebuild(&self.core, &dead.delivery, event, replay.mode).await?;
        let fingerprint = fingerprint(&format!("{id} {:?} {}", replay.mode, replay.again));
        let again = replay.again;
        let change = ReplayChange { dead: id, new, at: cx.now, again, edited: false };
        let observed = self.core.observer.replaying(&dead.delivery);
        let made = self.send_again(cx, change, replay.key.as_deref(), fingerprint).await;
        match (observed, &made) {
            (Some(observed), Ok(delivery)) => observed.replayed(*delivery),
            (Some(observed), Err(_)) => observed.forget(),
            (None, _) => {}
        }
        let made = made?;
        let (trace, event) = (dead.delivery.trace.map(display), &*dead.delivery.event);
        info!(target: "seawall", traceId = trace, deadLetterId = %id, eventId = event, deliveryId = %made, "[DeadLetter][Replay] Success.");
        Ok(made)
    }

    /// Commits a replay, once under its key.
    pub(super) async fn send_again(
        &self,
        cx: &Context,
        replay: ReplayChange,
        key: Option<&str>,
        fingerprint: [u8; 32],
    ) -> Result<DeliveryId, ChangeError> {
        let at = replay.at;
        let mut changes = Vec::new();
        if let Some(key) = key {
            let (key, note) = (key.to_owned(), String::new());
            changes.push(Change::ClaimKey(IdempotencyRecord { scope: "replay", key, fingerprint, note, at }));
        }
        changes.push(Change::Replay(replay));
        let first = |deliveries: &[DeliveryId]| deliveries.first().copied().ok_or(ChangeError::Missing);
        match self.core.commit_all(cx, changes).await {
            Ok(CommitResult { deliveries, .. }) => {
                self.core.deliver.wake_all();
                first(&deliveries.iter().map(|(id, _)| *id).collect::<Vec<_>>())
            }
            Err(StoreError::AlreadyApplied { fingerprint: there, deliveries, .. })
                if there == fingerprint =>
            {
                first(&deliveries)
            }
            Err(error) => Err(not_done(error)),
        }
    }

    /// Applies an action to a dead letter.
    pub async fn move_letter(
        &self,
        cx: &Context,
        dead: DeliveryId,
        to: LetterAction,
    ) -> Result<(), ChangeError> {
        let change = Change::Move(LetterMove { dead, to, at: cx.now });
        self.core.commit_all(cx, vec![change]).await.map_err(not_done)?;
        // Others may have waited for it.
        self.core.deliver.wake_all();
        info!(target: "seawall", deadLetterId = %dead, to = ?to, "[DeadLetter][Move] Success.");
        Ok(())
    }

    /// Writes or removes the note of a dead letter.
    pub async fn note_letter(
        &self,
        cx: &Context,
        dead: DeliveryId,
        note: Option<String>,
    ) -> Result<(), ChangeError> {
        check_note(note.as_deref())?;
        let change = Change::Note(Annotation::Letter { dead, note });
        self.core.commit_all(cx, vec![change]).await.map_err(not_done).map(drop)
    }

    /// Writes or removes the note of a group.
    pub async fn note_group(
        &self,
        cx: &Context,
        fingerprint: Fingerprint,
        note: Option<String>,
    ) -> Result<(), ChangeError> {
        check_note(note.as_deref())?;
        let change = Change::Note(Annotation::Group { fingerprint, note });
        self.core.commit_all(cx, vec![change]).await.map_err(not_done).map(drop)
    }

    /// Sets the state of a group, with an optional note.
    pub async fn settle_group(
        &self,
        cx: &Context,
        fingerprint: Fingerprint,
        state: GroupState,
        note: Option<String>,
    ) -> Result<(), ChangeError> {
        check_note(note.as_deref())?;
        let mut changes = vec![Change::Note(Annotation::GroupState { fingerprint, state })];
        if note.is_some() {
            changes.push(Change::Note(Annotation::Group { fingerprint, note }));
        }
        self.core.commit_all(cx, changes).await.map_err(not_done)?;
        info!(target: "seawall", group = %fingerprint, state = state.word(), "[DeadLetter][Group] Success.");
        Ok(())
    }
}

/// Converts a dead letter to its exported form.
#[must_use]
pub fn record(whole: &DeadLetterDetails) -> Record {
    let DeadLetterDetails { dead, attempts, event, .. } = whole;
    let delivery = &dead.delivery;
    Record {
        id: delivery.id.to_string(),
        origin: Origin {
            kind: "bridge".into(),
            place: delivery.service.to_string(),
            id: delivery.event.clone(),
            at: None,
        },
        payload: event.payload.to_vec(),
        headers: RenderedRequest::from_bytes(&delivery.request, &delivery.payload)
            .map(|request| request.attributes)
            .unwrap_or_default(),
        fault: LetterFault {
            reason: delivery.reason.map_or("unknown", |reason| reason.word()).into(),
            message: dead.error.clone(),
        },
        at: dead.at,
        attempts: attempts.clone(),
        trace: event.trace.clone(),
    }
}

fn check_note(note: Option<&str>) -> Result<(), ChangeError> {
    match note.map(|note| note.chars().count()) {
        Some(length) if length > NOTE_MAX => {
            let reason = format!("must have at most {NOTE_MAX} characters, not {length}");
            Err(ChangeError::Wrong(vec![("note".into(), reason)]))
        }
        _ => Ok(()),
    }
}

/// Converts the error of a store.
pub(super) fn not_done(error: StoreError) -> ChangeError {
    match error {
        StoreError::AlreadyApplied { .. } => {
            let reason = "the key was used for something else; use another key";
            ChangeError::Wrong(vec![("Idempotency-Key".into(), reason.into())])
        }
        StoreError::AlreadyReplayed(id, state) => ChangeError::Conflict(match state {
            DeliveryState::Delivered => {
                format!(
                    "it has been replayed as {id}, which is delivered; `again: true` allows a second replay"
                )
            }
            DeliveryState::DeadLettered => format!(
                "it has been replayed as {id}, which has failed too and is a dead letter itself: replay that one, or say \
                 `again: true`"
            ),
            _ => format!(
                "it has been replayed as {id}, which is in progress; `again: true` allows a second replay"
            ),
        }),
        StoreError::WrongState(word) => ChangeError::Conflict(format!("not possible in the state {word}")),
        StoreError::NotADeadLetter(_) | StoreError::Stale { found: None } => ChangeError::Missing,
        error => ChangeError::Store(error),
    }
}

pub(super) fn fingerprint(what: &str) -> [u8; 32] {
    Sha256::digest(what).into()
}
