//! The hub and its API use the same words.

use std::collections::BTreeSet;

use seawall_api as wire;
use seawall_hub_core::domain::alert::{ConditionKind, NoticeKind, Severity};
use seawall_hub_core::domain::circuit::CircuitState;
use seawall_hub_core::domain::dead_letter::{GroupState, LetterState};
use seawall_hub_core::domain::delivery::DeadLetterReason;
use seawall_hub_core::domain::delivery::waiting::Wait;
use seawall_hub_core::domain::key::Scope;
use seawall_hub_core::domain::operation::OperationState;

use crate::http::shape::schemas_of;
use crate::source::cloudevents::BATCH_MAX;

/// API-4: an enum of the domain has the words of the wire enum of the same meaning.
#[test]
fn api_4_the_domain_and_the_wire_have_the_same_words() {
    macro_rules! same {
        ($($domain:ty => $wire:ty;)+) => {$(
            let (domain, wire) = (<$domain>::ALL.map(<$domain>::word), <$wire>::WORDS);
            assert_eq!(BTreeSet::from(domain), wire.iter().copied().collect(), stringify!($domain));
        )+};
    }
    same! {
        Scope => wire::Scope;
        OperationState => wire::OperationState;
        Severity => wire::Severity;
        ConditionKind => wire::ConditionKind;
        NoticeKind => wire::NotificationKind;
        CircuitState => wire::CircuitState;
        GroupState => wire::GroupState;
        LetterState => wire::LetterState;
        DeadLetterReason => wire::DeadLetterReason;
    }
    assert_eq!(BTreeSet::from(Wait::WORDS), wire::WaitReason::WORDS.iter().copied().collect());
}

/// API-4: every state by which deliveries are listed is one of theirs, or stands for all in progress.
#[test]
fn api_4_deliveries_are_listed_by_their_states() {
    let (last, others) = wire::DeliveryStateFilter::WORDS.split_last().unwrap();
    assert_eq!((*last, others), ("open", wire::DeliveryState::WORDS));
}

/// API-4: the bounds that the schema of a batch states are those of the reader.
#[test]
fn api_4_a_batch_has_the_same_bound_everywhere() {
    let (read, _) = schemas_of::<wire::EventBatch>();
    assert_eq!(read["properties"]["events"]["maxItems"], BATCH_MAX);
}
