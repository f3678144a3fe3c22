//! Groups of dead letters that failed alike, with their counts.
//!
//! # Why is a group locked before it is changed?
//! Its counts decide about its state and whether it goes. So the row stays locked from the look to the commit: a dead letter that
//! joins waits for one that leaves, and begins a new group if that was the last one. Groups that one unit changes are locked in the
//! order of their numbers.

use seawall_hub_core::domain::dead_letter::{
    FailureSignature, Fingerprint, GroupChange, GroupFacts, LetterCounts, LetterState,
};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;
use tokio_postgres::Row;

use super::applier::{ApplyError, UnitApplier};
use super::locks::NameKind;
use crate::postgres::rows::{Columns, small};
use crate::postgres::text::stored;
use crate::record::{StoredNumber, fingerprint_to_number};
use crate::sql::sql;

impl UnitApplier<'_> {
    /// Adds a failure to its group, and returns the number of the group. `beside` is another group that the unit changes.
    pub(super) async fn join_group(
        &self,
        failure: FailureSignature,
        at: Millis,
        beside: Option<i64>,
    ) -> Result<i64, ApplyError> {
        if let Some(group) = self.lock_group(Fingerprint::of(&failure), beside).await? {
            return self.join(group, at).await;
        }
        // Others who begin a group of this kind wait, so that their number keeps within its limit.
        let reason = failure.reason.to_number().to_string();
        let status = failure.status.map(|status| status.to_string()).unwrap_or_default();
        let kind = [failure.service.as_str(), failure.rule.as_str(), &reason, &status];
        self.lock_name(NameKind::Groups, &kind).await?;
        let limited = failure.clone().limited(self.groups_alike(&failure).await?);
        for failure in [&failure, &limited] {
            if let Some(group) = self.lock_group(Fingerprint::of(failure), beside).await? {
                return self.join(group, at).await;
            }
        }
        self.begin_group(&limited, at).await
    }

    /// Changes the group of a dead letter as a function of its present row.
    pub(super) async fn update_group(
        &self,
        number: i64,
        change: impl FnOnce(&GroupFacts) -> GroupChange,
    ) -> Result<(), ApplyError> {
        let sql = sql!("SELECT number, " GROUP_FACTS " FROM letter_groups WHERE number = $1 FOR UPDATE");
        match self.find(sql, &[&number]).await? {
            Some(row) => self.change_group(number, &change(&group_facts(&row)?.1), None).await,
            None => Ok(()),
        }
    }

    /// Locks groups in the order of their numbers, so that two who change several of them don't wait for each other.
    pub(super) async fn lock_groups(&self, numbers: &[i64]) -> Result<(), ApplyError> {
        let sql = "SELECT number FROM letter_groups WHERE number = ANY ($1) ORDER BY number FOR UPDATE";
        self.rows(sql, &[&numbers]).await.map(drop)
    }

    /// Locks the group with this fingerprint, if there is one, together with another group.
    async fn lock_group(
        &self,
        fingerprint: Fingerprint,
        beside: Option<i64>,
    ) -> Result<Option<(i64, GroupFacts)>, ApplyError> {
        let rows = self
            .rows(
                sql!("SELECT number, " GROUP_FACTS ", fingerprint = $1 FROM letter_groups
                      WHERE fingerprint = $1 OR number = $2 ORDER BY number FOR UPDATE"),
                &[&fingerprint_to_number(fingerprint), &beside],
            )
            .await?;
        for row in &rows {
            if row.try_get(8)? {
                return group_facts(row).map(Some);
            }
        }
        Ok(None)
    }

    async fn join(&self, (number, facts): (i64, GroupFacts), at: Millis) -> Result<i64, ApplyError> {
        self.change_group(number, &facts.joined(), Some(at)).await?;
        Ok(number)
    }

    async fn begin_group(&self, failure: &FailureSignature, at: Millis) -> Result<i64, ApplyError> {
        let GroupFacts { state, counts } = GroupFacts::first();
        let [open, replaying, delivered, failed_again, parked, deleted] = counts.0.map(u64::cast_signed);
        let added = self
            .find(
                "INSERT INTO letter_groups (fingerprint, service, rule, reason, status, message, state, first, last, reopened,
                  open, replaying, delivered, failed_again, parked, deleted)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 0, $9, $10, $11, $12, $13, $14)
                 ON CONFLICT (fingerprint) DO NOTHING RETURNING number",
                &[
                    &fingerprint_to_number(Fingerprint::of(failure)),
                    &failure.service.as_str(),
                    &failure.rule.as_str(),
                    &small(failure.reason),
                    &failure.status.map(i32::from),
                    &stored(&failure.message),
                    &small(state),
                    &at.0,
                    &open,
                    &replaying,
                    &delivered,
                    &failed_again,
                    &parked,
                    &deleted,
                ],
            )
            .await?;
        let added = added.ok_or_else(|| StoreError::Failed("its group is one of other failures".into()))?;
        Ok(added.try_get(0)?)
    }

    /// Returns the number of groups that differ from a failure in the message only.
    async fn groups_alike(&self, failure: &FailureSignature) -> Result<u32, ApplyError> {
        let count = self
            .find(
                "SELECT count(*) FROM letter_groups
                 WHERE service = $1 AND rule = $2 AND reason = $3 AND status IS NOT DISTINCT FROM $4",
                &[
                    &failure.service.as_str(),
                    &failure.rule.as_str(),
                    &small(failure.reason),
                    &failure.status.map(i32::from),
                ],
            )
            .await?;
        let count = count.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Writes the change of a group that is locked; `failed` is when a dead letter joined it.
    async fn change_group(
        &self,
        number: i64,
        change: &GroupChange,
        failed: Option<Millis>,
    ) -> Result<(), ApplyError> {
        if change.removed {
            return self.run("DELETE FROM letter_groups WHERE number = $1", &[&number]).await.map(drop);
        }
        let [open, replaying, delivered, failed_again, parked, deleted] = change.counts;
        self.run(
            "UPDATE letter_groups SET state = $2, reopened = reopened + $3, last = greatest(last, $4), open = open + $5,
              replaying = replaying + $6, delivered = delivered + $7, failed_again = failed_again + $8, parked = parked + $9,
              deleted = deleted + $10 WHERE number = $1",
            &[
                &number,
                &small(change.state),
                &i32::from(change.reopened),
                &failed.map(|failed| failed.0),
                &open,
                &replaying,
                &delivered,
                &failed_again,
                &parked,
                &deleted,
            ],
        )
        .await
        .map(drop)
    }
}

/// Reads the number of a group and `GROUP_FACTS`: the state, and the counts in the order of `LetterState::ALL`.
fn group_facts(row: &Row) -> Result<(i64, GroupFacts), ApplyError> {
    let mut columns = Columns::new("letter_groups", row);
    let (number, state, mut counts) = (columns.integer()?, columns.numbered()?, [0; LetterState::ALL.len()]);
    for count in &mut counts {
        *count = columns.number()?;
    }
    Ok((number, GroupFacts { state, counts: LetterCounts(counts) }))
}
