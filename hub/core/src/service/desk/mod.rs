//! The dead letter desk: what has failed for good, and what people do about it.
//!
//! - one dead letter: look at it, send it again, change it and send it, put it aside, delete it, restore it (here and in `edit`),
//! - groups of those that have failed alike: acknowledge, resolve, write something down,
//! - work on many: an operation that is kept, with a rate, a canary and a brake (`work` and `run`).

mod edit;
mod passes;
mod remake;
mod run;
mod work;

use seawall_dist::deadletter::{LetterFault, Origin, Record};
use sha2::{Digest, Sha256};
use tracing::field::display;
use tracing::info;

use super::hub::{Hub, Refused};
use crate::domain::delivery::{DeliveryId, State};
use crate::domain::letter::{Fingerprint, GroupState};
use crate::domain::operation::Mode;
use crate::port::store::{Change, Committed, Move, Note, Once, Replay, Store, StoreError, Tray, WholeLetter};
use crate::port::transport::Transport;
use crate::render::Request;

pub use edit::{Difference, Edit, Edited, differences};
pub use remake::curl;
pub(super) use run::Work as RunningWork;
pub use work::{Preview, Steering, Work};

/// What to replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Again {
    /// Which dead letter.
    pub dead: DeliveryId,
    /// How.
    pub mode: Mode,
    /// Also if it has been replayed.
    pub again: bool,
    /// Whoever asks again under this key means the same.
    pub key: Option<String>,
}

/// Notes have so many characters at most.
const NOTE_MAX: usize = 4_000;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Sends a dead letter again, as a new delivery that is linked to it, with fresh attempts. It obeys circuit, limits and
    /// order like any other.
    pub async fn replay(&self, replay: &Again) -> Result<DeliveryId, Refused> {
        let found = self.store.dead_letter(replay.dead).await?;
        let Some(WholeLetter { dead, event, .. }) = found else { return Err(Refused::Missing) };
        let new = remake::Remaker::new(self).make(&dead.delivery, &event, replay.mode).await?;
        let fingerprint = fingerprint(&format!("{} {:?} {}", replay.dead, replay.mode, replay.again));
        let again = replay.again;
        let change = Replay { dead: replay.dead, new, at: self.now(), again, edited: false };
        let made = self.send_again(change, replay.key.as_deref(), fingerprint).await?;
        let (trace, event) = (dead.delivery.trace.map(display), &*dead.delivery.event);
        info!(target: "seawall", traceId = trace, deadLetterId = %replay.dead, eventId = event, deliveryId = %made, "[DeadLetter][Replay] Success.");
        Ok(made)
    }

    /// Writes down a replay, once under its key.
    async fn send_again(
        &self,
        replay: Replay,
        key: Option<&str>,
        fingerprint: [u8; 32],
    ) -> Result<DeliveryId, Refused> {
        let at = replay.at;
        let mut changes = Vec::new();
        if let Some(key) = key {
            let (key, note) = (key.to_owned(), String::new());
            changes.push(Change::Once(Once { scope: "replay", key, fingerprint, note, at }));
        }
        changes.push(Change::Replay(replay));
        let first = |deliveries: &[DeliveryId]| deliveries.first().copied().ok_or(Refused::Missing);
        match self.commit_all(changes).await {
            Ok(Committed { deliveries, .. }) => {
                self.deliver.look_again();
                first(&deliveries.iter().map(|(id, _)| *id).collect::<Vec<_>>())
            }
            Err(StoreError::Happened { fingerprint: there, deliveries, .. }) if there == fingerprint => {
                first(&deliveries)
            }
            Err(error) => Err(not_done(error)),
        }
    }

    /// Puts a dead letter somewhere else.
    pub async fn move_letter(&self, dead: DeliveryId, to: Tray) -> Result<(), Refused> {
        let change = Change::Move(Move { dead, to, at: self.now() });
        self.commit_all(vec![change]).await.map_err(not_done)?;
        // Others may have waited for it.
        self.deliver.look_again();
        info!(target: "seawall", deadLetterId = %dead, to = ?to, "[DeadLetter][Move] Success.");
        Ok(())
    }

    /// Writes down something about a dead letter, or takes it away.
    pub async fn note_letter(&self, dead: DeliveryId, note: Option<String>) -> Result<(), Refused> {
        check_note(note.as_deref())?;
        let change = Change::Note(Note::Letter { dead, note });
        self.commit_all(vec![change]).await.map_err(not_done).map(drop)
    }

    /// Writes down something about a group, or takes it away.
    pub async fn note_group(&self, fingerprint: Fingerprint, note: Option<String>) -> Result<(), Refused> {
        check_note(note.as_deref())?;
        let change = Change::Note(Note::Group { fingerprint, note });
        self.commit_all(vec![change]).await.map_err(not_done).map(drop)
    }

    /// Says where a group stands; with a note, if there is one.
    pub async fn settle_group(
        &self,
        fingerprint: Fingerprint,
        state: GroupState,
        note: Option<String>,
    ) -> Result<(), Refused> {
        check_note(note.as_deref())?;
        let mut changes = vec![Change::Note(Note::Stands { fingerprint, state })];
        if note.is_some() {
            changes.push(Change::Note(Note::Group { fingerprint, note }));
        }
        self.commit_all(changes).await.map_err(not_done)?;
        info!(target: "seawall", group = %fingerprint, state = state.word(), "[DeadLetter][Group] Success.");
        Ok(())
    }

    /// A dead letter with all that belongs to it, and in the form that all dead letters have.
    pub async fn dead_letter(&self, id: DeliveryId) -> Result<Option<(WholeLetter, Record)>, StoreError> {
        let Some(whole) = self.store.dead_letter(id).await? else { return Ok(None) };
        let record = record(&whole);
        Ok(Some((whole, record)))
    }
}

/// In the form that all dead letters have.
#[must_use]
pub fn record(whole: &WholeLetter) -> Record {
    let WholeLetter { dead, attempts, event, .. } = whole;
    let kept = &dead.delivery;
    Record {
        id: kept.id.to_string(),
        origin: Origin {
            kind: "bridge".into(),
            place: kept.service.to_string(),
            id: kept.event.clone(),
            at: None,
        },
        payload: event.payload.to_vec(),
        headers: Request::from_bytes(&kept.request, &kept.payload)
            .map(|request| request.headers)
            .unwrap_or_default(),
        fault: LetterFault {
            reason: kept.reason.map_or("unknown", |reason| reason.word()).into(),
            message: dead.error.clone(),
        },
        at: dead.at,
        attempts: attempts.clone(),
        trace: event.trace.clone(),
    }
}

fn check_note(note: Option<&str>) -> Result<(), Refused> {
    match note.map(|note| note.chars().count()) {
        Some(length) if length > NOTE_MAX => {
            let reason = format!("it has {length} characters, and may have {NOTE_MAX}");
            Err(Refused::Wrong(vec![("note".into(), reason)]))
        }
        _ => Ok(()),
    }
}

/// Why something on the desk was not done.
fn not_done(error: StoreError) -> Refused {
    match error {
        StoreError::Happened { .. } => {
            let reason = "the key was used for something else; use another key";
            Refused::Wrong(vec![("Idempotency-Key".into(), reason.into())])
        }
        StoreError::Replayed(id, state) => Refused::Conflict(match state {
            State::Delivered => {
                format!(
                    "it has been replayed as {id}, which is delivered; with `again: true` it is sent once more"
                )
            }
            State::DeadLettered => format!(
                "it has been replayed as {id}, which has failed too and is a dead letter itself: replay that one, or say \
                 `again: true`"
            ),
            _ => format!(
                "it has been replayed as {id}, which is under way; with `again: true` it is sent once more"
            ),
        }),
        StoreError::Elsewhere(word) => {
            Refused::Conflict(format!("it is {word}, and that can't be done from there"))
        }
        StoreError::NotDead(_) | StoreError::Stale { found: None } => Refused::Missing,
        error => Refused::Store(error),
    }
}

fn fingerprint(what: &str) -> [u8; 32] {
    Sha256::digest(what).into()
}
