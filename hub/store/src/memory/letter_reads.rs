//! The queries for dead letters, groups and bulk operations.

use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, LetterFilter, LetterGroup, LetterState,
};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationState};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, DeadLetterReads, MatchCount, Page,
    PageRequest, StoreError,
};

use super::MemoryStore;
use super::reads::page_of;
use super::tables::{MemoryLetter, Tables};
use super::words::TextQuery;

/// The maximum number of related deliveries of an event.
const RELATED: usize = 100;

impl Tables {
    fn dead_letter(&self, number: u64, whole: bool) -> Option<DeadLetter> {
        let letter = self.letters.get(&number)?;
        let delivery = self.stored(number, whole)?;
        let replayed = self.replay_of_letter(letter).zip(letter.replayed);
        Some(DeadLetter {
            source: delivery.source.clone(),
            delivery,
            at: letter.at,
            error: letter.error.clone(),
            status: letter.status,
            replayed: replayed.map(|((number, state), (_, at))| (self.id(number), state, at)),
            state: letter.state,
            group: self.groups.get(&letter.group)?.fingerprint,
            deleted: letter.deleted,
            note: letter.note.clone(),
            operation: letter.operation.map(|number| OperationId::new(self.database, number)),
            edited: letter.edited,
        })
    }

    /// Whether a dead letter passes a filter.
    fn matches(
        &self,
        filter: &LetterFilter,
        text: Option<&TextQuery>,
        number: u64,
        letter: &MemoryLetter,
    ) -> bool {
        let (Some(row), Some(group)) = (self.deliveries.get(&number), self.groups.get(&letter.group)) else {
            return false;
        };
        let Some(event) = self.events.get(&row.event) else { return false };
        let failure = &group.failure;
        let in_state = if filter.states.is_empty() {
            letter.state != LetterState::Deleted
        } else {
            filter.states.contains(&letter.state)
        };
        in_state
            && filter.service.as_ref().is_none_or(|service| *service == failure.service)
            && filter.rule.as_ref().is_none_or(|rule| *rule == failure.rule)
            && filter.event.as_ref().is_none_or(|id| *id == event.id)
            && filter.reason.is_none_or(|reason| reason == failure.reason)
            && filter.status.is_none_or(|status| Some(status) == failure.status)
            && filter.group.is_none_or(|fingerprint| fingerprint == group.fingerprint)
            && filter.since.is_none_or(|since| letter.at >= since)
            && filter.before.is_none_or(|before| letter.at < before)
            && filter.up_to.is_none_or(|last| number <= last)
            && (filter.ids.is_empty() || filter.ids.contains(&self.id(number)))
            && !filter.except.contains(&failure.service)
            && filter.within.services.as_ref().is_none_or(|services| services.contains(&failure.service))
            && filter.within.sources.as_ref().is_none_or(|sources| sources.contains(&event.source))
            && text.is_none_or(|text| letter.indexed && text.matches(&self.words(number)))
    }

    /// Returns the numbers of the dead letters that pass a filter, the oldest first.
    fn matching(&self, filter: &LetterFilter) -> Vec<u64> {
        let text = filter.text.as_deref().map(TextQuery::new);
        self.letters.keys_of(|number, letter| self.matches(filter, text.as_ref(), *number, letter))
    }

    fn unindexed(&self, filter: &LetterFilter) -> u64 {
        let missing = || self.letters.values().filter(|letter| !letter.indexed).count() as u64;
        filter.text.as_ref().map_or(0, |_| missing())
    }

    /// Returns a group with its sample: the newest open dead letter, or else the newest of all.
    fn group_with_sample(&self, number: u64, group: &LetterGroup) -> LetterGroup {
        let state = LetterState::ALL.into_iter().find(|state| group.counts.of(*state) > 0);
        let mut letters = self.letters.iter().rev();
        let newest = letters.find(|(_, letter)| letter.group == number && Some(letter.state) == state);
        LetterGroup { sample: newest.map(|(number, _)| self.id(*number)), ..group.clone() }
    }
}

impl DeadLetterReads for MemoryStore {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        let tables = self.tables();
        let (Some(row), Some(dead)) = (tables.delivery(id), tables.dead_letter(id.number, true)) else {
            return Ok(None);
        };
        let Some(event) = tables.events.get(&row.event) else { return Ok(None) };
        let related =
            tables.deliveries.keys_of(|number, other| other.event == row.event && *number != id.number);
        let related = related.into_iter().rev().take(RELATED);
        let before = row.replay_of.and_then(|original| tables.stored(original, true));
        Ok(Some(DeadLetterDetails {
            dead,
            attempts: row.attempts.clone(),
            event: event.clone(),
            related: related.filter_map(|number| tables.stored(number, false)).collect(),
            before: before.map(|stored| (stored.request, stored.payload)),
        }))
    }

    async fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        let tables = self.tables();
        let text = filter.text.as_deref().map(TextQuery::new);
        let page = page_of(&tables.letters, page, |number, letter| {
            let matches = tables.matches(&filter, text.as_ref(), number, letter);
            matches.then(|| tables.dead_letter(number, false)).flatten()
        });
        Ok(DeadLetterPage { page, unindexed: tables.unindexed(&filter) })
    }

    async fn count_letters(&self, filter: LetterFilter, limit: u64) -> Result<MatchCount, StoreError> {
        let tables = self.tables();
        let count = (tables.matching(&filter).len() as u64).min(limit);
        Ok(MatchCount { count, all: count < limit, unindexed: tables.unindexed(&filter) })
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        limit: usize,
    ) -> Result<DeadLetterBatch, StoreError> {
        let tables = self.tables();
        let numbers: Vec<u64> =
            tables.matching(&filter).into_iter().filter(|number| *number > behind).take(limit).collect();
        let read = |number: &u64| {
            let event = tables.events.get(&tables.deliveries.get(number)?.event)?;
            Some((tables.dead_letter(*number, true)?, event.clone()))
        };
        let last = numbers.last().copied().unwrap_or(behind);
        Ok((numbers.iter().filter_map(read).collect(), last, numbers.len() >= limit))
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        let tables = self.tables();
        let has_failed =
            |number: &u64| tables.deliveries.get(number).is_some_and(|row| row.facts.progress.failures > 0);
        let of_operation = tables
            .letters
            .iter()
            .filter(|(number, letter)| **number <= up_to && letter.operation == Some(operation.number));
        let mut replays = of_operation.filter_map(|(_, letter)| letter.replayed.map(|(number, _)| number));
        Ok(replays.find(has_failed).map(|number| tables.id(number)))
    }

    async fn groups(&self, filter: GroupFilter, page: PageRequest) -> Result<Page<LetterGroup>, StoreError> {
        let tables = self.tables();
        let GroupFilter { service, rule, states, services } = &filter;
        let takes = |group: &LetterGroup| {
            service.as_ref().is_none_or(|service| *service == group.failure.service)
                && rule.as_ref().is_none_or(|rule| *rule == group.failure.rule)
                && (states.is_empty() || states.contains(&group.state))
                && services.as_ref().is_none_or(|services| services.contains(&group.failure.service))
        };
        let mut all: Vec<_> = tables.groups.iter().filter(|(_, group)| takes(group)).collect();
        all.sort_by_key(|(number, group)| std::cmp::Reverse((group.last, **number)));
        // The position of a page is the number of groups before it.
        let from = page.from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0).min(all.len());
        let to = from.saturating_add(page.size).min(all.len());
        let items = all[from..to].iter().map(|(number, group)| tables.group_with_sample(**number, group));
        Ok(Page { items: items.collect(), next: (to < all.len()).then_some(to as u64) })
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        let tables = self.tables();
        let mut groups = tables.groups.iter();
        let found = groups.find(|(_, group)| group.fingerprint == fingerprint);
        Ok(found.map(|(number, group)| tables.group_with_sample(*number, group)))
    }

    async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        Ok(page_of(&self.tables().operations, page, |_, operation| Some(operation.clone())))
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        let tables = self.tables();
        Ok(tables.operations.get(&id.number).filter(|_| id.database == tables.database).cloned())
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        let tables = self.tables();
        let is_untried = |letter: &&MemoryLetter| {
            let replay = letter.replayed.and_then(|(number, _)| tables.deliveries.get(&number));
            let untried = |row: &super::tables::DeliveryRow| {
                row.facts.progress.failures == 0 && row.facts.state.is_pending()
            };
            letter.operation == Some(operation.number)
                && letter.state == LetterState::Replaying
                && replay.is_some_and(untried)
        };
        let of_service = |letter: &MemoryLetter, service: &Slug| {
            tables.groups.get(&letter.group).is_some_and(|group| group.failure.service == *service)
        };
        let count = |service: Slug| {
            let untried = tables.letters.values().filter(is_untried);
            let count = untried.filter(|letter| of_service(letter, &service)).count() as u64;
            (count > 0).then_some((service, count))
        };
        Ok(services.into_iter().filter_map(count).collect())
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        let tables = self.tables();
        let running = tables.operations.values().filter(|operation| operation.run == OperationState::Running);
        Ok(running.cloned().collect())
    }
}
