//! What happens to a letter, as functions over plain data. Every store loads a letter, asks one of these, and keeps what it
//! says, all in one transaction.

use super::replay::marked_headers;
use super::{
    Attempt, ChangeOutcome, CopyOutcome, DeadLetter, Edit, FailedReplay, LetterChange, LetterReplay,
    PutOutcome, Record, ReplayClaim, ReplayMessage, ReplayRequest, ReplayStart, Status,
};
use crate::Millis;

/// Adds a record to the letter of the same id. Attempts are never replaced: those that the letter does not know are added.
///
/// A record that tells something new means that the thing died again, so that the letter waits again, also if it had been
/// deleted; a parked one stays parked. If a replay of it was running, that replay has evidently arrived.
pub fn merge(letter: &mut DeadLetter, record: &Record, now: Millis) -> PutOutcome {
    let mut unmatched = letter.record.attempts.clone();
    let mut added: Vec<Attempt> = Vec::new();
    for attempt in &record.attempts {
        // Two attempts that look the same are two: each known one accounts for one of them.
        match unmatched.iter().position(|known| known == attempt) {
            Some(index) => drop(unmatched.swap_remove(index)),
            None => added.push(attempt.clone()),
        }
    }
    if added.is_empty() && record.at <= letter.record.at {
        return PutOutcome::Known;
    }
    letter.record.attempts.append(&mut added);
    letter.record.fault = record.fault.clone();
    letter.record.at = letter.record.at.max(record.at);
    letter.deleted_at = None;
    if let Some(claim) = letter.claim.take() {
        let generation = letter.generation() + 1;
        letter.replays.push(LetterReplay { generation, key: claim.key, at: now });
    }
    if letter.status != Status::Parked {
        letter.status = Status::Waiting;
        letter.superseded_by = None;
    }
    PutOutcome::Updated
}

/// Changes a letter as an operator wants it.
pub fn apply(letter: &mut DeadLetter, change: LetterChange, now: Millis) -> ChangeOutcome {
    let deleted = letter.deleted_at.is_some();
    match (change, letter.status) {
        (LetterChange::Delete, _) if deleted => return ChangeOutcome::Unchanged,
        (LetterChange::Delete, _) => letter.deleted_at = Some(now),
        (LetterChange::Restore, _) if deleted => letter.deleted_at = None,
        (LetterChange::Restore, _) => return ChangeOutcome::Unchanged,
        (_, status) if deleted => return ChangeOutcome::Refused(status),
        (LetterChange::Park, Status::Waiting) => letter.status = Status::Parked,
        (LetterChange::Park, Status::Parked) | (LetterChange::Unpark, Status::Waiting) => {
            return ChangeOutcome::Unchanged;
        }
        (LetterChange::Unpark, Status::Parked | Status::Superseded) => {
            letter.status = Status::Waiting;
            letter.superseded_by = None;
        }
        (_, status) => return ChangeOutcome::Refused(status),
    }
    ChangeOutcome::Changed
}

/// Claims a letter for a replay, unless it was replayed under this key, somebody is at it, or its status forbids it.
pub fn begin_replay(letter: &mut DeadLetter, request: &ReplayRequest, now: Millis) -> ReplayStart {
    if let Some(done) = letter.replays.iter().find(|replay| replay.key == request.key) {
        return ReplayStart::Done { generation: done.generation };
    }
    if letter.deleted_at.is_some() {
        return ReplayStart::Refused(letter.status);
    }
    if let Some(claim) = letter.claim.as_ref().filter(|claim| claim.until > now) {
        return ReplayStart::InProgress { until: claim.until };
    }
    match letter.status {
        Status::Waiting => {}
        Status::Replayed if request.again => {}
        status => return ReplayStart::Refused(status),
    }
    letter.claims += 1;
    let claim = ReplayClaim { number: letter.claims, key: request.key.clone(), until: now + request.lease };
    letter.claim = Some(claim);
    let message = message_of(letter, request, letter.generation() + 1);
    ReplayStart::Started { claim: letter.claims, message: Box::new(message) }
}

/// Records how a replay ended. Returns false if the claim is no longer the newest one: its lease ended and another replay
/// began, or the letter died again meanwhile.
pub fn finish_replay(
    letter: &mut DeadLetter,
    claim: u64,
    failure: Option<&FailedReplay>,
    now: Millis,
) -> bool {
    let Some(claim) = letter.claim.take_if(|held| held.number == claim) else { return false };
    match failure {
        None => {
            let generation = letter.generation() + 1;
            letter.replays.push(LetterReplay { generation, key: claim.key, at: now });
            letter.status = Status::Replayed;
        }
        Some(failure) => letter.record.attempts.push(Attempt {
            at: Millis(now.0.saturating_sub(i64::try_from(failure.took.as_millis()).unwrap_or(i64::MAX))),
            took: failure.took,
            error: Some(failure.error.clone()),
            ..Attempt::default()
        }),
    }
    true
}

/// Makes an edited copy, which stands in for the letter from then on, unless a replay of the letter is at work. The attempts stay
/// with the original.
///
/// `existing` is the letter that has the id of the copy already, if there is one.
pub fn copy(
    letter: &mut DeadLetter,
    edit: &Edit,
    copy_id: &str,
    existing: Option<DeadLetter>,
    now: Millis,
) -> CopyOutcome {
    let payload = edit.payload.as_ref().unwrap_or(&letter.record.payload);
    let headers = edit.headers.as_ref().unwrap_or(&letter.record.headers);
    if let Some(existing) = existing {
        let same = existing.copy_of.as_deref() == Some(letter.id())
            && existing.record.payload == *payload
            && existing.record.headers == *headers;
        return if same { CopyOutcome::Copied(Box::new(existing)) } else { CopyOutcome::Mismatch };
    }
    if letter.deleted_at.is_some() || letter.status == Status::Superseded {
        return CopyOutcome::Refused(letter.status);
    }
    if let Some(claim) = letter.claim.as_ref().filter(|claim| claim.until > now) {
        return CopyOutcome::InProgress { until: claim.until };
    }
    // A claim that a crash left behind: if its replay ends after all, it must not hide that there is a copy.
    letter.claim = None;
    let mut copy = DeadLetter::new(Record {
        id: copy_id.to_owned(),
        payload: payload.clone(),
        headers: headers.clone(),
        at: now,
        attempts: Vec::new(),
        ..letter.record.clone()
    });
    copy.copy_of = Some(letter.id().to_owned());
    letter.status = Status::Superseded;
    letter.superseded_by = Some(copy_id.to_owned());
    CopyOutcome::Copied(Box::new(copy))
}

/// The message of a replay: what was to be sent, with the marks that tell the receiver what it is.
fn message_of(letter: &DeadLetter, request: &ReplayRequest, generation: u32) -> ReplayMessage {
    let record = &letter.record;
    ReplayMessage {
        letter_id: record.id.clone(),
        origin: record.origin.clone(),
        payload: record.payload.clone(),
        headers: marked_headers(record, generation),
        trace: record.trace.clone(),
        generation,
        key: request.key.clone(),
    }
}
