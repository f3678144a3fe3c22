//! The suite can fail: a store that is broken on purpose, in one way at a time, does not pass.

use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, LetterFilter, LetterGroup, LetterState,
};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_store::OpenError;
use seawall_hub_store::memory::{MemoryPlace, MemoryStore};

use super::fixtures::*;
use super::{Capabilities, MemoryFactory, StoreFactory};

/// A way in which a store is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Breakage {
    DropsIdempotencyRecords,
    SettlesLeasesOfOtherEpochs,
    ForgetsTheOrder,
    ClaimsTwice,
    ResurrectsDeletedLetters,
    CountsGroupsWrongly,
    ReturnsAPageTwice,
    AppliesHalfAUnit,
    PrunesWhatIsPending,
    ForgetsTheVersionCheck,
}

const BREAKAGES: [Breakage; 10] = [
    Breakage::DropsIdempotencyRecords,
    Breakage::SettlesLeasesOfOtherEpochs,
    Breakage::ForgetsTheOrder,
    Breakage::ClaimsTwice,
    Breakage::ResurrectsDeletedLetters,
    Breakage::CountsGroupsWrongly,
    Breakage::ReturnsAPageTwice,
    Breakage::AppliesHalfAUnit,
    Breakage::PrunesWhatIsPending,
    Breakage::ForgetsTheVersionCheck,
];

/// A memory store with one breakage.
#[derive(Clone)]
pub(crate) struct BrokenStore {
    inner: MemoryStore,
    breakage: Breakage,
}

/// The factory of the store with the breakage of this number.
struct BrokenFactory<const BREAKAGE: usize>(MemoryPlace);

impl<const BREAKAGE: usize> StoreFactory for BrokenFactory<BREAKAGE> {
    type Store = BrokenStore;
    const CAPABILITIES: Capabilities = MemoryFactory::CAPABILITIES;

    async fn create() -> Self {
        BrokenFactory(MemoryPlace::new(7))
    }

    async fn open(&self) -> Result<BrokenStore, OpenError> {
        Ok(BrokenStore { inner: self.0.open(), breakage: BREAKAGES[BREAKAGE] })
    }
}

impl BrokenStore {
    /// Returns the change as the broken store understands it; `None` if it drops it.
    fn distorted(&self, change: Change) -> Option<Change> {
        let ours = |claim: Claim| Claim { epoch: self.inner.epoch(), ..claim };
        Some(match (self.breakage, change) {
            (Breakage::DropsIdempotencyRecords, Change::ClaimKey(_)) => return None,
            (Breakage::SettlesLeasesOfOtherEpochs, Change::Settle(settled)) => {
                Change::Settle(Settlement { claim: ours(settled.claim), ..settled })
            }
            (Breakage::ForgetsTheOrder, Change::AddEvent(event, deliveries)) => {
                let unordered = |new: NewDelivery| NewDelivery { order: None, ..new };
                Change::AddEvent(event, deliveries.into_iter().map(unordered).collect())
            }
            (_, change) => change,
        })
    }

    /// Ends all claimed deliveries long ago, so that they look old.
    async fn end_all_claimed(&self, priority: WritePriority) {
        let filter = DeliveryFilter { states: vec![DeliveryState::Leased], ..DeliveryFilter::default() };
        let page = PageRequest { from: None, size: 1_000 };
        for stored in self.inner.deliveries(filter, page).await.unwrap().items {
            let ended = settlement(Claim { delivery: stored.id, epoch: stored.epoch }, DELIVERED);
            let ended = Settlement { at: Millis(0), ..ended };
            self.inner.commit(priority, unit([Change::Settle(ended)])).await.unwrap();
        }
    }
}

impl UnitStore for BrokenStore {
    async fn commit(&self, priority: WritePriority, unit: UnitOfWork) -> Result<CommitResult, StoreError> {
        let changes: Vec<Change> =
            unit.changes.into_iter().filter_map(|change| self.distorted(change)).collect();
        match (self.breakage, &changes[..]) {
            (Breakage::ResurrectsDeletedLetters, [Change::Move(moved)])
                if moved.to == LetterAction::Delete =>
            {
                let done = self.inner.commit(priority, UnitOfWork { changes: changes.clone() }).await?;
                let restored = LetterMove { to: LetterAction::Restore, ..moved.clone() };
                self.inner.commit(priority, UnitOfWork::of(Change::Move(restored))).await?;
                Ok(done)
            }
            (Breakage::AppliesHalfAUnit, _) => {
                let mut done = CommitResult::default();
                for change in changes {
                    done = self.inner.commit(priority, UnitOfWork::of(change)).await?;
                }
                Ok(done)
            }
            (Breakage::PrunesWhatIsPending, [Change::Prune(PruneTarget::Events { .. })]) => {
                self.end_all_claimed(priority).await;
                self.inner.commit(priority, UnitOfWork { changes }).await
            }
            (Breakage::ForgetsTheVersionCheck, [Change::PutService(new)]) => {
                match self.inner.commit(priority, UnitOfWork { changes: changes.clone() }).await {
                    Err(StoreError::Stale { found }) => {
                        let new = Service { version: found.unwrap_or(0) + 1, ..new.clone() };
                        self.inner.commit(priority, UnitOfWork::of(Change::PutService(new))).await
                    }
                    answer => answer,
                }
            }
            _ => self.inner.commit(priority, UnitOfWork { changes }).await,
        }
    }

    async fn commit_all(
        &self,
        priority: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> Vec<Result<CommitResult, StoreError>> {
        let mut answers = Vec::new();
        for unit in units {
            answers.push(self.commit(priority, unit).await);
        }
        answers
    }

    async fn claimed(&self, scope: &'static str, key: &str) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.inner.claimed(scope, key).await
    }

    async fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        let taken = self.inner.take_due(now, room).await?;
        if self.breakage == Breakage::ClaimsTwice {
            let claims = taken.iter().map(|stored| Claim { delivery: stored.id, epoch: stored.epoch });
            let given_back = UnitOfWork::of(Change::ReturnToStore(claims.collect()));
            self.inner.commit(WritePriority::Outcomes, given_back).await?;
        }
        Ok(taken)
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        self.inner.step_marks()
    }

    async fn quarantine_candidates(&self) -> Result<Vec<(StoredDelivery, CrashHistory)>, StoreError> {
        self.inner.quarantine_candidates().await
    }

    async fn next_due(&self) -> Result<Vec<DueTimes>, StoreError> {
        self.inner.next_due().await
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    async fn broken(&self) -> StoreError {
        self.inner.broken().await
    }

    fn record_gauges(&self) {
        self.inner.record_gauges();
    }
}

impl RegistryReads for BrokenStore {
    async fn registered(&self) -> Result<RegistrySnapshot, StoreError> {
        self.inner.registered().await
    }

    async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        self.inner.rule_versions(name).await
    }

    async fn circuit_history(&self, service: &Slug, most: usize) -> Result<Vec<Circuit>, StoreError> {
        self.inner.circuit_history(service, most).await
    }

    async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.inner.audit(page).await
    }
}

impl EventReads for BrokenStore {
    async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        self.inner.event(id, source).await
    }

    async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        self.inner.events(filter, page).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        self.inner.delivery(id).await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.inner.deliveries(filter, page).await
    }

    async fn pending(&self, whose: DeliverySelector, most: u32) -> Result<u32, StoreError> {
        self.inner.pending(whose, most).await
    }

    async fn backlog_counts(&self, services: Vec<Slug>, most: u32) -> Result<BacklogCounts, StoreError> {
        self.inner.backlog_counts(services, most).await
    }
}

impl DeadLetterReads for BrokenStore {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        self.inner.dead_letter(id).await
    }

    async fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        let mut found = self.inner.dead_letters(filter, page).await?;
        if self.breakage == Breakage::ReturnsAPageTwice && page.from.is_none() {
            found.page.next = found.page.next.map(|_| u64::MAX);
        }
        Ok(found)
    }

    async fn count_letters(&self, filter: LetterFilter, most: u64) -> Result<MatchCount, StoreError> {
        self.inner.count_letters(filter, most).await
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        most: usize,
    ) -> Result<DeadLetterBatch, StoreError> {
        self.inner.letters_behind(filter, behind, most).await
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        self.inner.failed_replay(operation, up_to).await
    }

    async fn groups(&self, filter: GroupFilter, page: PageRequest) -> Result<Page<LetterGroup>, StoreError> {
        let mut found = self.inner.groups(filter, page).await?;
        if self.breakage == Breakage::CountsGroupsWrongly
            && let Some(group) = found.items.first_mut()
        {
            group.counts.0[LetterState::Open as usize] += 1;
        }
        Ok(found)
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        self.inner.group(fingerprint).await
    }

    async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        self.inner.operations(page).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.inner.operation(id).await
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        self.inner.untried_replays(operation, services).await
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        self.inner.running().await
    }
}

impl AlertReads for BrokenStore {
    async fn live_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        self.inner.live_incidents().await
    }

    async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        self.inner.incident(id).await
    }

    async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> Result<Page<Incident>, StoreError> {
        self.inner.incidents(filter, page).await
    }

    async fn dead_since(&self, since: Millis, most: u32) -> Result<Vec<(Slug, u32)>, StoreError> {
        self.inner.dead_since(since, most).await
    }
}

impl RetentionReads for BrokenStore {
    async fn old_events(&self, limits: Limits, behind: u64) -> Result<PrunableEvents, StoreError> {
        self.inner.old_events(limits, behind).await
    }
}

/// Runs a function of the suite on a store with the breakage of this number, and expects that it panics.
macro_rules! fails {
    ($($name:ident: $breakage:literal = $module:ident::$test:ident;)+) => {
        $(#[tokio::test]
        async fn $name() {
            let mut run = tokio::task::JoinSet::new();
            run.spawn(super::$module::$test::<BrokenFactory<$breakage>>());
            let ended = run.join_next().await.unwrap();
            assert!(ended.is_err_and(|error| error.is_panic()), "{:?}", BREAKAGES[$breakage]);
        })+
    };
}

fails! {
    hub_14_a_dropped_idempotency_record_is_found: 0 = units::hub_3_a_key_is_claimed_once;
    hub_14_a_settled_lease_of_another_epoch_is_found: 1 = deliveries::prm_2_a_restart_takes_up_what_was_in_hand;
    hub_14_a_forgotten_order_is_found: 2 = order::hub_5_deliveries_with_one_key_go_one_after_the_other;
    hub_14_a_second_claim_is_found: 3 = deliveries::hub_5_a_delivery_waits_is_taken_and_ends;
    hub_14_a_second_claimer_is_found: 3 = races::hub_14_two_claimers_get_different_deliveries;
    hub_14_a_resurrected_letter_is_found: 4 = letters::hub_6_a_dead_letter_is_deleted_restored_and_purged;
    hub_14_a_wrong_count_is_found: 5 = letters::hub_6_filters_find_what_a_look_at_each_finds_and_groups_count_right;
    hub_14_a_page_that_comes_twice_is_found: 6 = letters::hub_6_filters_find_what_a_look_at_each_finds_and_groups_count_right;
    hub_14_half_a_unit_is_found: 7 = units::hub_14_a_unit_is_committed_as_a_whole_or_not_at_all;
    hub_14_a_pruned_pending_delivery_is_found: 8 = retention::hub_9_an_event_goes_when_all_that_came_of_it_is_old;
    hub_14_a_forgotten_version_check_is_found: 9 = registry::hub_1_services_and_rules_are_kept_by_version;
}
