//! Filters of dead letters and of their groups.

use schemars::JsonSchema;
use seawall_api::{DeadLetterFilter, FailureFilter, GroupQuery, LetterQuery, LetterStates, Timestamp};
use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, GroupState, LetterFilter, LetterState,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId};
use seawall_hub_core::domain::time::Millis;
use serde::de::DeserializeOwned;

use crate::http::access::Caller;
use crate::http::input::{Input, slug};
use seawall_api::FieldProblem;

/// The states of dead letters that were not replayed, and of those that were. A deleted one is neither.
const NOT_REPLAYED: [LetterState; 2] = [LetterState::Open, LetterState::Parked];
const REPLAYED: [LetterState; 3] = [LetterState::Replaying, LetterState::Delivered, LetterState::FailedAgain];

const CONTRADICTION: &str = "matches nothing together with `standing`; omit one of them";

/// Refuses a filter in a body whose `standing` and `replayed` exclude each other.
pub(super) fn check<S: DeserializeOwned + JsonSchema + 'static>(input: &mut Input<S>) {
    let standing = input.get::<LetterStates>("filter.standing");
    if is_contradictory(standing.as_ref(), input.get("filter.replayed")) {
        input.wrong("filter.replayed", CONTRADICTION);
    }
}

/// True if no state is left. An empty list of states would match all.
fn is_contradictory(standing: Option<&LetterStates>, replayed: Option<bool>) -> bool {
    standing.is_some() && replayed.is_some() && states(standing, replayed).is_empty()
}

/// The filter over what the caller may see.
pub(super) fn to_domain(filter: DeadLetterFilter, caller: &Caller) -> LetterFilter {
    let FailureFilter { service, rule, reason, status, group, replayed } = filter.failure;
    let ids = filter.ids.unwrap_or_default();
    LetterFilter {
        service: service.as_ref().map(slug),
        rule: rule.as_ref().map(slug),
        event: filter.event,
        reason: reason.and_then(|reason| DeadLetterReason::from_word(reason.as_str())),
        status,
        group: group.and_then(|group| Fingerprint::parse(group.as_str())),
        states: states(filter.standing.as_ref(), replayed),
        since: filter.since.as_ref().and_then(time),
        before: filter.until.as_ref().and_then(time),
        up_to: None,
        text: filter.q,
        ids: ids.iter().filter_map(|id| DeliveryId::parse(id.as_str())).collect(),
        except: Vec::new(),
        within: caller.within(),
    }
}

/// The states that a filter asks for. If it names none, the list is empty.
fn states(standing: Option<&LetterStates>, replayed: Option<bool>) -> Vec<LetterState> {
    let asked = standing.into_iter().flat_map(|LetterStates(states)| states);
    let asked = asked.filter_map(|state| LetterState::from_word(state.as_str()));
    let replayed = replayed.map(|replayed| if replayed { &REPLAYED[..] } else { &NOT_REPLAYED[..] });
    match (asked.collect::<Vec<_>>(), replayed) {
        (asked, None) => asked,
        (asked, Some(replayed)) if asked.is_empty() => replayed.to_vec(),
        (asked, Some(replayed)) => asked.into_iter().filter(|state| replayed.contains(state)).collect(),
    }
}

fn time(text: &Timestamp) -> Option<Millis> {
    Millis::from_rfc3339(text.as_str())
}

/// The filter of a list or an export, over what the caller may see.
pub(super) fn of_query(query: LetterQuery, caller: &Caller) -> Result<LetterFilter, Vec<FieldProblem>> {
    let filter = DeadLetterFilter::from(query);
    match is_contradictory(filter.standing.as_ref(), filter.failure.replayed) {
        true => Err(vec![FieldProblem { field: "replayed".into(), reason: CONTRADICTION.into() }]),
        false => Ok(to_domain(filter, caller)),
    }
}

/// The filter of a list of groups, over what the caller may see.
pub(super) fn of_groups(query: &GroupQuery, caller: &Caller) -> GroupFilter {
    let states = query.state.as_deref().into_iter().flat_map(|states| states.split(','));
    GroupFilter {
        service: query.service.as_ref().map(slug),
        rule: query.rule.as_ref().map(slug),
        states: states.filter_map(|state| GroupState::from_word(state.trim())).collect(),
        services: caller.within().services,
    }
}
