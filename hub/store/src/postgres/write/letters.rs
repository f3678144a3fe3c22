//! Changes of dead letters.
//!
//! # What is locked?
//! The order of the dead letter, before anything is read; then its row; then its group, and its operation last. A replay that ends
//! takes the same way from its original on.

use seawall_hub_core::domain::dead_letter::{
    FailureSignature, FailureSummary, LetterAction, LetterChange, LetterState, ReplayRefusal,
};
use seawall_hub_core::domain::delivery::{
    DeadLetterReason, DeliveryId, DeliveryState, Disposition, StoredState,
};
use seawall_hub_core::domain::operation::OperationProgress;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Annotation, LetterMove, NewDelivery, ReplayChange, StoreError};
use tokio_postgres::Row;

use super::applier::{ApplyError, UnitApplier};
use super::events::DeliveryInsert;
use crate::postgres::rows::{Columns, small};
use crate::postgres::text::stored;
use crate::record::fingerprint_to_number;

/// The row of a dead letter, which is locked.
#[derive(Clone, Copy)]
pub(super) struct LockedLetter {
    pub(super) number: i64,
    pub(super) grouping: i64,
    pub(super) state: LetterState,
    /// The operation that waits for its replay.
    operation: Option<i64>,
    /// The last replay.
    replayed: Option<i64>,
}

/// The columns that [`LockedLetter::read`] reads.
const LETTER: &str = "l.delivery, l.grouping, l.standing, l.operation, l.replayed";

impl LockedLetter {
    fn read(row: &Row) -> Result<Self, ApplyError> {
        let mut columns = Columns::new("dead_letters", row);
        Ok(LockedLetter {
            number: columns.integer()?,
            grouping: columns.integer()?,
            state: columns.numbered()?,
            operation: columns.integer_or_null()?,
            replayed: columns.integer_or_null()?,
        })
    }
}

impl UnitApplier<'_> {
    /// Adds a dead letter to its group. If it replays another dead letter, that one has failed again.
    pub(super) async fn add_dead_letter(
        &mut self,
        number: i64,
        at: Millis,
        failure: Option<&FailureSummary>,
        attempt_number: u32,
    ) -> Result<(), ApplyError> {
        let row = self
            .find(
                "SELECT d.number, d.service, d.rule, p.reason, d.replay_of FROM deliveries d
                 JOIN progress p ON p.number = d.number WHERE d.number = $1",
                &[&number],
            )
            .await?
            .ok_or_else(|| StoreError::Failed(format!("delivery {number} is not there")))?;
        let mut columns = Columns::new("deliveries", &row);
        columns.skip();
        let (service, rule): (Slug, Slug) = (columns.slug()?, columns.slug()?);
        let reason = columns.numbered_or_null()?.unwrap_or(DeadLetterReason::Impossible);
        let original = match columns.integer_or_null()? {
            Some(original) => self.replayed_letter(original, number).await?,
            None => None,
        };
        let unknown = FailureSummary::default();
        let failure = failure.unwrap_or(&unknown);
        let signature = FailureSignature::new(service, rule, reason, failure);
        let grouping = self.join_group(signature, at, original.map(|letter| letter.grouping)).await?;
        self.run(
            "INSERT INTO dead_letters (delivery, grouping, standing, at, status, error, indexed, edited)
             VALUES ($1, $2, $3, $4, $5, $6, false, false)",
            &[
                &number,
                &grouping,
                &small(LetterState::Open),
                &at.0,
                &failure.status.map(i32::from),
                &failure.message.as_deref().map(stored),
            ],
        )
        .await?;
        match original {
            Some(letter) => self.replay_ended(letter, LetterState::FailedAgain, attempt_number <= 1).await,
            None => Ok(()),
        }
    }

    /// Returns the row of a dead letter, also of a deleted one, and locks it.
    async fn letter(&self, dead: DeliveryId) -> Result<LockedLetter, ApplyError> {
        let sql = format!(
            "SELECT {LETTER} FROM dead_letters l JOIN deliveries d ON d.number = l.delivery
             WHERE l.delivery = $1 AND d.era = $2 FOR UPDATE OF l"
        );
        let found = self.find(&sql, &[&dead.number.cast_signed(), &dead.database.cast_signed()]).await?;
        found
            .as_ref()
            .map(LockedLetter::read)
            .transpose()?
            .ok_or_else(|| StoreError::NotADeadLetter(dead).into())
    }

    /// Returns the rows of several dead letters, in the order of their numbers, and locks them and their groups.
    pub(super) async fn letters(&self, dead: &[DeliveryId]) -> Result<Vec<LockedLetter>, ApplyError> {
        let numbers: Vec<i64> = dead.iter().map(|dead| dead.number.cast_signed()).collect();
        let eras: Vec<i64> = dead.iter().map(|dead| dead.database.cast_signed()).collect();
        let sql = format!(
            "SELECT {LETTER} FROM dead_letters l JOIN deliveries d ON d.number = l.delivery
             WHERE (l.delivery, d.era) IN (SELECT number, era FROM unnest($1::bigint[], $2::bigint[]) AS a (number, era))
             ORDER BY l.delivery FOR UPDATE OF l"
        );
        let rows = self.rows(&sql, &[&numbers, &eras]).await?;
        let letters: Vec<LockedLetter> = rows.iter().map(LockedLetter::read).collect::<Result<_, _>>()?;
        let groups: Vec<i64> = letters.iter().map(|letter| letter.grouping).collect();
        self.lock_groups(&groups).await?;
        Ok(letters)
    }

    /// Returns the row of a dead letter, if this is its last replay, and locks it.
    async fn replayed_letter(&self, original: i64, replay: i64) -> Result<Option<LockedLetter>, ApplyError> {
        let sql = format!(
            "SELECT {LETTER} FROM dead_letters l WHERE l.delivery = $1 AND l.replayed = $2 FOR UPDATE"
        );
        self.find(&sql, &[&original, &replay]).await?.as_ref().map(LockedLetter::read).transpose()
    }

    /// Inserts a delivery that is linked to the dead letter, and marks the dead letter: both, or none.
    pub(super) async fn replay(&mut self, replay: &ReplayChange) -> Result<(), ApplyError> {
        self.lock_orders_of(&[replay.dead], &[&replay.new]).await?;
        let letter = self.letter(replay.dead).await?;
        match letter.state.may_replay(replay.again) {
            Ok(()) => self.replay_found(letter, replay, None).await,
            Err(ReplayRefusal::Deleted) => Err(StoreError::WrongState(letter.state.word()).into()),
            Err(ReplayRefusal::ReplayedBefore) => {
                let before = self.last_replay(letter).await?;
                let unknown = StoreError::WrongState(letter.state.word());
                Err(before.map_or(unknown, |(id, state)| StoreError::AlreadyReplayed(id, state)).into())
            }
        }
    }

    /// Returns the last replay of a dead letter, and its state.
    async fn last_replay(
        &self,
        letter: LockedLetter,
    ) -> Result<Option<(DeliveryId, DeliveryState)>, ApplyError> {
        let sql = "SELECT d.number, d.era, p.state FROM deliveries d JOIN progress p ON p.number = d.number WHERE d.number = $1";
        let Some(row) = self.find(sql, &[&letter.replayed]).await? else { return Ok(None) };
        let mut columns = Columns::new("deliveries", &row);
        let (number, era) = (columns.number()?, columns.number()?);
        Ok(Some((DeliveryId::new(era, number), columns.numbered::<StoredState>()?.shown())))
    }

    /// Locks the orders of dead letters, and those of deliveries that replay them.
    pub(super) async fn lock_orders_of(
        &self,
        dead: &[DeliveryId],
        new: &[&NewDelivery],
    ) -> Result<(), ApplyError> {
        let numbers: Vec<i64> = dead.iter().map(|dead| dead.number.cast_signed()).collect();
        let sql =
            "SELECT number, rule, ordering FROM deliveries WHERE number = ANY ($1) AND ordering IS NOT NULL";
        let mut orders: Vec<(String, String)> = Vec::new();
        for row in self.rows(sql, &[&numbers]).await? {
            let mut columns = Columns::new("deliveries", &row);
            columns.skip();
            orders.push((columns.value()?, columns.text()?));
        }
        let known = orders.iter().map(|(rule, order)| (rule.as_str(), order.as_str()));
        let new = new.iter().filter_map(|new| Some((new.rule.0.as_str(), new.order.as_deref()?)));
        let all: Vec<(&str, &str)> = known.chain(new).collect();
        if all.is_empty() { Ok(()) } else { self.lock_orders(&all).await }
    }

    pub(super) async fn replay_found(
        &mut self,
        letter: LockedLetter,
        replay: &ReplayChange,
        operation: Option<i64>,
    ) -> Result<(), ApplyError> {
        let ReplayChange { dead, new, at, edited, .. } = replay;
        let number = letter.number;
        // If it holds up others, the new one takes its place: it must not wait for itself.
        self.stop_holding(number).await?;
        let sql = "SELECT number, event, rule, ordering FROM deliveries WHERE number = $1";
        let row = self.find(sql, &[&number]).await?.ok_or(StoreError::NotADeadLetter(*dead))?;
        let mut columns = Columns::new("deliveries", &row);
        columns.skip();
        let (event, rule, order) = (columns.integer()?, columns.slug()?, columns.text_or_null()?);
        let insert = DeliveryInsert { event, new, at: *at, replay_of: Some(number) };
        let made = self.add_delivery(&insert).await?;
        if order.is_some() {
            // The rule may have another ordering key by now; then those behind the dead letter wait for nobody.
            let stays = rule == new.rule.0 && new.order == order;
            self.start_replayed(number, stays.then_some(made)).await?;
        }
        self.run(
            "UPDATE dead_letters SET replayed = $2, replayed_at = $3, operation = $4, edited = $5 WHERE delivery = $1",
            &[
                &number,
                &made.0,
                &at.0,
                &letter.state.operation_of_replay(letter.operation, operation),
                edited,
            ],
        )
        .await?;
        self.set_letter_state(letter, LetterState::Replaying).await
    }

    /// Changes the state of a dead letter, and the counts of its group.
    async fn set_letter_state(&self, letter: LockedLetter, to: LetterState) -> Result<(), ApplyError> {
        let LockedLetter { number, grouping, state: from, .. } = letter;
        if from == to {
            return Ok(());
        }
        self.run("UPDATE dead_letters SET standing = $2 WHERE delivery = $1", &[&number, &small(to)]).await?;
        self.update_group(grouping, |group| group.moved(from, to)).await
    }

    /// Records an attempt of a replay in its dead letter and its operation. For a replay that was given up, its own dead letter
    /// has done that.
    pub(super) async fn replay_tried(
        &mut self,
        replay: i64,
        attempt_number: u32,
        disposition: &Disposition,
    ) -> Result<(), ApplyError> {
        let becomes = match disposition {
            Disposition::Delivered => LetterState::Delivered,
            Disposition::Retry { .. } if attempt_number <= 1 => LetterState::Replaying,
            _ => return Ok(()),
        };
        let sql = "SELECT replay_of FROM deliveries WHERE number = $1";
        let original = self.find(sql, &[&replay]).await?.map(|row| row.try_get(0)).transpose()?.flatten();
        let Some(original) = original else { return Ok(()) };
        match self.replayed_letter(original, replay).await? {
            Some(letter) => self.replay_ended(letter, becomes, attempt_number <= 1).await,
            None => Ok(()),
        }
    }

    /// Records an attempt of the last replay of a dead letter that leads to this state.
    async fn replay_ended(
        &self,
        letter: LockedLetter,
        becomes: LetterState,
        is_first: bool,
    ) -> Result<(), ApplyError> {
        self.set_letter_state(letter, letter.state.after_replay(becomes)).await?;
        let Some(operation) = letter.operation else { return Ok(()) };
        let OperationProgress { tried, faltered, delivered, failed, .. } =
            OperationProgress::on_attempt(becomes, is_first);
        let [tried, faltered, delivered, failed] = [tried, faltered, delivered, failed].map(u64::cast_signed);
        self.run(
            "UPDATE operations SET tried = tried + $2, faltered = faltered + $3, delivered = delivered + $4,
              failed = failed + $5 WHERE number = $1",
            &[&operation, &tried, &faltered, &delivered, &failed],
        )
        .await
        .map(drop)
    }

    /// Applies an action to a dead letter.
    pub(super) async fn move_letter(&mut self, moved: &LetterMove) -> Result<(), ApplyError> {
        self.lock_orders_of(&[moved.dead], &[]).await?;
        let letter = self.letter(moved.dead).await?;
        let change = self.change_of(letter, moved.to).await?;
        let change = change.map_err(|state| StoreError::WrongState(state.word()))?;
        self.change_letter(letter, change, moved.at).await
    }

    /// Returns what an action does to a dead letter, or the state that does not allow it.
    pub(super) async fn change_of(
        &self,
        letter: LockedLetter,
        action: LetterAction,
    ) -> Result<Result<LetterChange, LetterState>, ApplyError> {
        let replay = if action.depends_on_replay(letter.state) {
            self.last_replay(letter).await?.map(|(_, state)| state)
        } else {
            None
        };
        Ok(letter.state.apply(action, replay))
    }

    /// Writes the change of a dead letter. Its order has to be locked.
    pub(super) async fn change_letter(
        &mut self,
        letter: LockedLetter,
        change: LetterChange,
        at: Millis,
    ) -> Result<(), ApplyError> {
        let discarded = "UPDATE dead_letters SET discarded = $2 WHERE delivery = $1";
        let number = letter.number;
        match change {
            LetterChange::State(to) => self.set_letter_state(letter, to).await,
            LetterChange::Deleted => {
                self.run(discarded, &[&number, &Some(at.0)]).await?;
                self.release_order(number).await?;
                self.set_letter_state(letter, LetterState::Deleted).await
            }
            LetterChange::Restored(to) => {
                self.run(discarded, &[&number, &None::<i64>]).await?;
                self.set_letter_state(letter, to).await
            }
            LetterChange::Purged => {
                self.release_order(number).await?;
                self.forget(number).await?;
                self.run("DELETE FROM attempts WHERE delivery = $1", &[&number]).await?;
                self.run("UPDATE deliveries SET request = '' WHERE number = $1", &[&number]).await.map(drop)
            }
        }
    }

    /// Removes a dead letter from the index and from its group.
    pub(super) async fn forget(&mut self, number: i64) -> Result<(), ApplyError> {
        let sql = format!("DELETE FROM dead_letters l WHERE l.delivery = $1 RETURNING {LETTER}");
        let Some(row) = self.find(&sql, &[&number]).await? else { return Ok(()) };
        let letter = LockedLetter::read(&row)?;
        self.run("DELETE FROM letter_words WHERE delivery = $1", &[&number]).await?;
        self.update_group(letter.grouping, |group| group.left(letter.state)).await
    }

    /// Writes a note or a state. Each is one statement: a missing row is not changed.
    pub(super) async fn note(&mut self, note: &Annotation) -> Result<(), ApplyError> {
        let changed = match note {
            Annotation::Letter { dead, note } => {
                self.letter(*dead).await?;
                let note = note.as_deref().map(stored);
                let sql = "UPDATE dead_letters SET note = $2 WHERE delivery = $1";
                self.run(sql, &[&dead.number.cast_signed(), &note]).await?
            }
            Annotation::Group { fingerprint, note } => {
                let note = note.as_deref().map(stored);
                let sql = "UPDATE letter_groups SET note = $2 WHERE fingerprint = $1";
                self.run(sql, &[&fingerprint_to_number(*fingerprint), &note]).await?
            }
            Annotation::GroupState { fingerprint, state } => {
                let sql = "UPDATE letter_groups SET state = $2 WHERE fingerprint = $1";
                self.run(sql, &[&fingerprint_to_number(*fingerprint), &small(*state)]).await?
            }
        };
        if changed == 0 { Err(StoreError::Stale { found: None }.into()) } else { Ok(()) }
    }
}
