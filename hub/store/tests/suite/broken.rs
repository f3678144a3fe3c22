//! The suite can fail: a store that is broken on purpose, in one way at a time, does not pass.

use seawall_hub_core::domain::dead_letter::{LetterGroup, LetterState};
use seawall_hub_store::OpenError;
use seawall_hub_store::memory::{MemoryPlace, MemoryStore};

use super::fixtures::*;
use super::wrapped::{Hooks, WrappedStore};
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

/// The factory of the store with the breakage of this number.
struct BrokenFactory<const BREAKAGE: usize>(MemoryPlace);

impl<const BREAKAGE: usize> StoreFactory for BrokenFactory<BREAKAGE> {
    type Store = WrappedStore<Breakage>;
    const CAPABILITIES: Capabilities = MemoryFactory::CAPABILITIES;

    async fn create() -> Self {
        BrokenFactory(MemoryPlace::new(7))
    }

    async fn open(&self) -> Result<WrappedStore<Breakage>, OpenError> {
        Ok(WrappedStore { inner: self.0.open(), hooks: BREAKAGES[BREAKAGE] })
    }
}

impl Breakage {
    /// Returns the change as the broken store understands it; `None` if it drops it.
    fn distorted(self, change: Change, epoch: u64) -> Option<Change> {
        let ours = |claim: Claim| Claim { epoch, ..claim };
        Some(match (self, change) {
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
}

/// Ends all claimed deliveries long ago, so that they look old.
async fn end_all_claimed(store: &MemoryStore, priority: WritePriority) {
    let filter = DeliveryFilter { states: vec![DeliveryState::Leased], ..DeliveryFilter::default() };
    let page = PageRequest { from: None, size: 1_000 };
    for stored in store.deliveries(filter, page).await.unwrap().items {
        let ended = settlement(Claim { delivery: stored.id, epoch: stored.epoch }, DELIVERED);
        let ended = Settlement { at: Millis(0), ..ended };
        store.commit(priority, unit([Change::Settle(ended)])).await.unwrap();
    }
}

impl Hooks for Breakage {
    async fn commit(
        &self,
        store: &MemoryStore,
        priority: WritePriority,
        unit: UnitOfWork,
    ) -> Result<CommitResult, StoreError> {
        let changes: Vec<Change> =
            unit.changes.into_iter().filter_map(|change| self.distorted(change, store.epoch())).collect();
        match (*self, &changes[..]) {
            (Breakage::ResurrectsDeletedLetters, [Change::Move(moved)])
                if moved.to == LetterAction::Delete =>
            {
                let done = store.commit(priority, UnitOfWork { changes: changes.clone() }).await?;
                let restored = LetterMove { to: LetterAction::Restore, ..moved.clone() };
                store.commit(priority, UnitOfWork::of(Change::Move(restored))).await?;
                Ok(done)
            }
            (Breakage::AppliesHalfAUnit, _) => {
                let mut done = CommitResult::default();
                for change in changes {
                    done = store.commit(priority, UnitOfWork::of(change)).await?;
                }
                Ok(done)
            }
            (Breakage::PrunesWhatIsPending, [Change::Prune(PruneTarget::Events { .. })]) => {
                end_all_claimed(store, priority).await;
                store.commit(priority, UnitOfWork { changes }).await
            }
            (Breakage::ForgetsTheVersionCheck, [Change::PutService(new)]) => {
                match store.commit(priority, UnitOfWork { changes: changes.clone() }).await {
                    Err(StoreError::Stale { found }) => {
                        let new = Service { version: found.unwrap_or(0) + 1, ..new.clone() };
                        store.commit(priority, UnitOfWork::of(Change::PutService(new))).await
                    }
                    answer => answer,
                }
            }
            _ => store.commit(priority, UnitOfWork { changes }).await,
        }
    }

    async fn take_due(
        &self,
        store: &MemoryStore,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        let taken = store.take_due(now, room).await?;
        if *self == Breakage::ClaimsTwice {
            let claims = taken.iter().map(|stored| Claim { delivery: stored.id, epoch: stored.epoch });
            let given_back = UnitOfWork::of(Change::ReturnToStore(claims.collect()));
            store.commit(WritePriority::Outcomes, given_back).await?;
        }
        Ok(taken)
    }

    fn found_letters(&self, page: PageRequest, mut found: DeadLetterPage) -> DeadLetterPage {
        if *self == Breakage::ReturnsAPageTwice && page.from.is_none() {
            found.page.next = found.page.next.map(|_| u64::MAX);
        }
        found
    }

    fn found_groups(&self, mut found: Page<LetterGroup>) -> Page<LetterGroup> {
        if *self == Breakage::CountsGroupsWrongly
            && let Some(group) = found.items.first_mut()
        {
            group.counts.0[LetterState::Open as usize] += 1;
        }
        found
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
