//! What a process had claimed when it ended: given back when that is known, and counted if the end was a crash.
//!
//! The rules are in `seawall_hub_core::domain::delivery::suspects`. What is given back is what was claimed under the epoch of a node
//! that has ended, and never what is claimed at all: others are at work. A delivery that a crash proved guilty stays claimed under
//! that epoch until a settlement of that claim quarantines it.

use std::sync::LazyLock;

use seawall_hub_core::domain::delivery::StoredState;
use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, CrashTrace, FEW, Suspicion};
use seawall_hub_core::port::store::{CrashHistory, StoredDelivery};

use super::applier::{ApplyError, UnitApplier};
use super::facts::int;
use super::set_based::{GUILTY, RESTART, SUSPECT_UNWATCHED};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{Columns, REQUEST, STORED, whole_delivery};
use crate::record::step_to_number;
use crate::sql::sql;
use crate::steps::Mark;

/// Nodes that have ended and whose claims nobody has given back, the oldest first.
const ENDED: &str = sql!(
    "SELECT epoch, state <> " NODE_STOPPED " FROM nodes WHERE state <> " NODE_LIVE " AND NOT reclaimed ORDER BY epoch FOR UPDATE"
);

/// Waits for the transactions of a node. Every transaction of a writer begins with a change of its row here, so none that begins
/// later thinks that its node is live.
const WAIT_FOR_WRITERS: &str = "SELECT number FROM writers WHERE epoch = $1 ORDER BY slot FOR UPDATE";

const STOP: &str = sql!("UPDATE nodes SET state = " NODE_STOPPED " WHERE epoch = $1 AND state = " NODE_LIVE);

impl UnitApplier<'_> {
    /// Gives back what all nodes had claimed that are no longer live, apart from what has to be quarantined. Each is reclaimed
    /// once. The marks are those of processes of this machine.
    pub(in crate::postgres) async fn reclaim(&self, marks: &[Mark]) -> Result<(), ApplyError> {
        for row in self.rows(ENDED, &[]).await? {
            let (epoch, crashed): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
            self.run(WAIT_FOR_WRITERS, &[&epoch]).await?;
            if crashed {
                self.suspect(epoch, marks).await?;
            }
            self.run(RESTART, &[&epoch, &i32::from(crashed), &int(CRASHES_MAX)]).await?;
            self.run("UPDATE nodes SET reclaimed = true WHERE epoch = $1", &[&epoch]).await?;
        }
        Ok(())
    }

    /// Updates the suspicion of each delivery that was claimed at the crash of this epoch.
    async fn suspect(&self, epoch: i64, marks: &[Mark]) -> Result<(), ApplyError> {
        let count = sql!("SELECT count(*) FROM work WHERE " IS_LEASED " AND epoch = $1");
        let claimed = self.find(count, &[&epoch]).await?.map(|row| row.try_get::<_, i64>(0));
        let claimed = u32::try_from(claimed.transpose()?.unwrap_or_default()).unwrap_or(u32::MAX);
        for mark in marks.iter().filter(|mark| mark.epoch == epoch) {
            let before = self.load_facts(mark.number).await?;
            // Those that were not watched are changed together.
            let Some(before) = before.filter(|before| before.crashes > 0) else { continue };
            if before.state != StoredState::Leased || before.epoch != epoch.cast_unsigned() {
                continue;
            }
            let Some(trace) = before.crash_trace(Some(mark.step), claimed) else { continue };
            self.store_facts(mark.number, &before.suspected(trace, epoch.cast_unsigned())).await?;
        }
        if claimed <= FEW {
            let Suspicion { crashes, step } = Suspicion::default().after(CrashTrace::Unwatched(claimed));
            let step = step_to_number(step) as i16;
            self.run(SUSPECT_UNWATCHED, &[&epoch, &int(crashes), &step, &epoch.to_string()]).await?;
        }
        Ok(())
    }

    /// Records that the process stopped in an orderly way.
    pub(in crate::postgres) async fn record_stop(&self) -> Result<(), ApplyError> {
        let epoch = self.node.epoch.cast_signed();
        self.run(STOP, &[&epoch]).await.map(drop)
    }
}

/// Lists the deliveries that a crash of their process proved guilty.
pub(in crate::postgres) async fn quarantine_candidates(
    session: &Session,
    epoch: u64,
) -> Result<Vec<(StoredDelivery, CrashHistory)>, ApplyError> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {STORED}, {REQUEST}, p.against, coalesce(p.starts, ''), p.step FROM work p
             JOIN deliveries d ON d.number = p.number JOIN events e ON e.number = d.event WHERE {GUILTY} ORDER BY p.number"
        )
    });
    let mut guilty = Vec::new();
    for row in session.rows(&SQL, &[&epoch.cast_signed(), &int(CRASHES_MAX)]).await? {
        let mut columns = Columns::new("work", &row);
        let delivery = whole_delivery(&mut columns)?;
        let (crashes, starts) = (columns.count()?, columns.value()?);
        guilty.push((delivery, CrashHistory { crashes, starts, step: columns.numbered()? }));
    }
    Ok(guilty)
}
