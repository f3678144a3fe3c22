//! The state of a delivery as a store keeps it, and the state that it starts in.

use super::{DeadLetterReason, DeliveryState, Disposition};

/// The state of a delivery as a store keeps it. It tells more than [`DeliveryState`]: whether a dead letter holds up its order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StoredState {
    /// A process has claimed it.
    Leased,
    /// It was never attempted, and waits for room in memory.
    Queued,
    /// It waits for its next attempt.
    Waiting,
    /// It waits for its service to recover.
    Stalled,
    /// It waits for earlier deliveries with the same ordering key.
    Blocked,
    /// Its rule is disabled and holds it.
    Held,
    /// It is a dead letter, and later deliveries with the same ordering key wait until somebody handles it.
    HoldingOrder,
    /// The service accepted it.
    Delivered,
    /// It is a dead letter that holds up nothing.
    DeadLettered,
}

impl StoredState {
    pub const ALL: [StoredState; 9] = [
        StoredState::Leased,
        StoredState::Queued,
        StoredState::Waiting,
        StoredState::Stalled,
        StoredState::Blocked,
        StoredState::Held,
        StoredState::HoldingOrder,
        StoredState::Delivered,
        StoredState::DeadLettered,
    ];

    /// Returns the state that a decision leads to, if nothing has changed since it was made. A deferred delivery stays claimed.
    #[must_use]
    pub const fn after(disposition: &Disposition) -> Self {
        match disposition {
            Disposition::Defer { .. } => StoredState::Leased,
            Disposition::Retry { stalled: false, .. } => StoredState::Waiting,
            Disposition::Retry { stalled: true, .. } => StoredState::Stalled,
            Disposition::Hold => StoredState::Held,
            Disposition::Delivered => StoredState::Delivered,
            Disposition::DeadLetter { holds_order: true, .. } => StoredState::HoldingOrder,
            Disposition::DeadLetter { holds_order: false, .. } => StoredState::DeadLettered,
        }
    }

    /// Returns the state that everybody but a store sees.
    #[must_use]
    pub const fn shown(self) -> DeliveryState {
        match self {
            StoredState::Leased => DeliveryState::Leased,
            StoredState::Queued => DeliveryState::Queued,
            StoredState::Waiting => DeliveryState::Waiting,
            StoredState::Stalled => DeliveryState::Stalled,
            StoredState::Blocked => DeliveryState::Blocked,
            StoredState::Held => DeliveryState::Held,
            StoredState::Delivered => DeliveryState::Delivered,
            StoredState::HoldingOrder | StoredState::DeadLettered => DeliveryState::DeadLettered,
        }
    }

    /// Whether the delivery has not ended.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        !matches!(self, StoredState::HoldingOrder | StoredState::Delivered | StoredState::DeadLettered)
    }

    /// Whether later deliveries with the same ordering key wait for it.
    #[must_use]
    pub const fn occupies_order(self) -> bool {
        self.is_pending() || matches!(self, StoredState::HoldingOrder)
    }
}

/// The status of the rule of a delivery, from the current version of the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleStatus {
    Enabled,
    Disabled,
    /// The rule has no current version.
    Deleted,
}

impl RuleStatus {
    pub const ALL: [RuleStatus; 3] = [RuleStatus::Enabled, RuleStatus::Disabled, RuleStatus::Deleted];

    /// Returns the status of a rule from its current version; `enabled` is `None` if there is none.
    #[must_use]
    pub const fn of(enabled: Option<bool>) -> Self {
        match enabled {
            Some(true) => RuleStatus::Enabled,
            Some(false) => RuleStatus::Disabled,
            None => RuleStatus::Deleted,
        }
    }
}

/// The state in which a delivery is inserted, as the dispatcher wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InitialState {
    /// Claimed by this process.
    Leased,
    /// Queued in the store, because there is no room in memory.
    Queued,
    /// Held, because its rule is disabled.
    Held,
    /// Dead-lettered, because no request could be rendered from the event.
    Dead {
        /// The reason of the dead letter.
        reason: DeadLetterReason,
        /// The error message.
        error: String,
        /// Whether later deliveries with the same ordering key wait until the dead letter is handled.
        hold: bool,
    },
}

impl InitialState {
    /// Whether the row of the rule decides. For every other delivery it need not be read: the dispatcher has the rule.
    #[must_use]
    pub const fn depends_on_rule(&self) -> bool {
        matches!(self, InitialState::Held)
    }

    /// Whether the other rows of the order decide, if the delivery has an ordering key.
    #[must_use]
    pub const fn depends_on_order(&self, rule: RuleStatus) -> bool {
        match self {
            InitialState::Leased | InitialState::Queued => true,
            InitialState::Held => matches!(rule, RuleStatus::Enabled),
            InitialState::Dead { .. } => false,
        }
    }
}

/// Returns the state in which a delivery is inserted, and the reason if it is a dead letter at once.
///
/// The facts come from the row of the rule, if the delivery [depends on it](InitialState::depends_on_rule), and from the rows with
/// the same ordering key: `order_busy` says that one of them [occupies the order](StoredState::occupies_order).
#[must_use]
pub const fn initial_state(
    wanted: &InitialState,
    rule: RuleStatus,
    order_busy: bool,
    is_replay: bool,
) -> (StoredState, Option<DeadLetterReason>) {
    let state = match (wanted, rule) {
        (InitialState::Dead { reason, hold: true, .. }, _) => {
            return (StoredState::HoldingOrder, Some(*reason));
        }
        (InitialState::Dead { reason, .. }, _) => return (StoredState::DeadLettered, Some(*reason)),
        // Nobody would ever release it.
        (InitialState::Held, RuleStatus::Deleted) => {
            return (StoredState::DeadLettered, Some(DeadLetterReason::Deleted));
        }
        // If the rule was enabled meanwhile, its held deliveries have been released, and nobody would release this one.
        (InitialState::Held, RuleStatus::Disabled) => StoredState::Held,
        _ if order_busy => StoredState::Blocked,
        (InitialState::Leased, _) => StoredState::Leased,
        // A replay comes behind new deliveries.
        _ if is_replay => StoredState::Waiting,
        _ => StoredState::Queued,
    };
    (state, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(hold: bool) -> InitialState {
        InitialState::Dead { reason: DeadLetterReason::Impossible, error: "no".into(), hold }
    }

    /// HUB-5: the state in which a delivery is inserted, for every combination of what the dispatcher wants and what the store
    /// knows.
    #[test]
    fn hub_5_a_delivery_starts_in_one_state() {
        for rule in RuleStatus::ALL {
            for busy in [false, true] {
                for is_replay in [false, true] {
                    let state = |wanted: &InitialState| initial_state(wanted, rule, busy, is_replay);
                    let queued = if is_replay { StoredState::Waiting } else { StoredState::Queued };
                    let or_blocked = |state| (if busy { StoredState::Blocked } else { state }, None);
                    assert_eq!(state(&InitialState::Leased), or_blocked(StoredState::Leased));
                    assert_eq!(state(&InitialState::Queued), or_blocked(queued));
                    let held = match rule {
                        RuleStatus::Enabled => or_blocked(queued),
                        RuleStatus::Disabled => (StoredState::Held, None),
                        RuleStatus::Deleted => (StoredState::DeadLettered, Some(DeadLetterReason::Deleted)),
                    };
                    assert_eq!(state(&InitialState::Held), held);
                    let impossible = Some(DeadLetterReason::Impossible);
                    assert_eq!(state(&dead(true)), (StoredState::HoldingOrder, impossible));
                    assert_eq!(state(&dead(false)), (StoredState::DeadLettered, impossible));
                }
            }
        }
    }

    /// HUB-5: a fact that need not be read makes no difference.
    #[test]
    fn hub_5_facts_that_need_not_be_read_make_no_difference() {
        for wanted in
            [InitialState::Leased, InitialState::Queued, InitialState::Held, dead(true), dead(false)]
        {
            for rule in RuleStatus::ALL {
                let state = |rule, busy| initial_state(&wanted, rule, busy, false);
                if !wanted.depends_on_rule() {
                    assert_eq!(state(rule, false), state(RuleStatus::Enabled, false), "{wanted:?}");
                }
                let differs = state(rule, true) != state(rule, false);
                assert_eq!(differs, wanted.depends_on_order(rule), "{wanted:?} {rule:?}");
            }
        }
    }

    /// HUB-5: a store tells one state more than everybody else sees, and what has not ended occupies its order.
    #[test]
    fn hub_5_a_dead_letter_that_holds_its_order_is_a_dead_letter() {
        for state in StoredState::ALL {
            let ended = matches!(state.shown(), DeliveryState::Delivered | DeliveryState::DeadLettered);
            assert_eq!(state.is_pending(), !ended, "{state:?}");
            let holds = state == StoredState::HoldingOrder;
            assert_eq!(state.occupies_order(), !ended || holds, "{state:?}");
        }
    }
}
