//! Deliveries with the same ordering key: one after the other.

use super::StoredState;

/// The rows of an order that decide which of its deliveries starts next: those with the same rule and ordering key that
/// [occupy the order](StoredState::occupies_order).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderFacts {
    /// The first delivery that is blocked or holds the order, with its number.
    pub first_waiting: Option<(u64, StoredState)>,
    /// Whether a delivery of the order is claimed, due or held.
    pub active: bool,
    /// Whether a dead letter holds the order, wherever in it.
    pub holding: bool,
}

impl OrderFacts {
    /// Collects the facts from rows in the order of their numbers.
    #[must_use]
    pub fn of(rows: impl IntoIterator<Item = (u64, StoredState)>) -> Self {
        let mut facts = OrderFacts::default();
        for (number, state) in rows {
            facts.active |= state.is_pending() && state != StoredState::Blocked;
            facts.holding |= state == StoredState::HoldingOrder;
            if matches!(state, StoredState::Blocked | StoredState::HoldingOrder) {
                facts.first_waiting.get_or_insert((number, state));
            }
        }
        facts
    }

    /// Returns the blocked delivery that starts when the active one has ended: the first, unless a dead letter before it holds the
    /// order.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        match self.first_waiting {
            Some((number, StoredState::Blocked)) if !self.active => Some(number),
            _ => None,
        }
    }

    /// Returns the blocked delivery that starts when a dead letter no longer holds the order. None starts while another dead
    /// letter holds it: a replay that has failed too holds the order with a number behind those that wait for it.
    #[must_use]
    pub fn next_when_released(&self) -> Option<u64> {
        if self.holding { None } else { self.next() }
    }

    /// Returns the delivery that starts when a dead letter was replayed in its order. The replay takes the place of the dead
    /// letter, whatever its own number is: it must not wait for those that wait for it.
    #[must_use]
    pub fn next_when_replayed(&self, replay: (u64, StoredState)) -> Option<u64> {
        match replay {
            (number, StoredState::Blocked) if !self.active && !self.holding => Some(number),
            _ => self.next_when_released(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKED: StoredState = StoredState::Blocked;
    const HOLDING: StoredState = StoredState::HoldingOrder;
    const LEASED: StoredState = StoredState::Leased;

    /// HUB-5: the first that is blocked starts when nothing is active, and a dead letter holds up those behind it, not those
    /// before it.
    #[test]
    fn hub_5_the_first_blocked_delivery_starts_when_nothing_is_active() {
        let table: [(&[StoredState], Option<u64>); 9] = [
            (&[], None),
            (&[BLOCKED], Some(0)),
            (&[BLOCKED, BLOCKED], Some(0)),
            (&[LEASED, BLOCKED], None),
            (&[BLOCKED, StoredState::Held], None),
            (&[HOLDING, BLOCKED], None),
            (&[BLOCKED, HOLDING], Some(0)),
            (&[StoredState::Delivered, BLOCKED], Some(1)),
            (&[StoredState::DeadLettered, BLOCKED, HOLDING], Some(1)),
        ];
        for (states, next) in table {
            assert_eq!(OrderFacts::of((0..).zip(states.iter().copied())).next(), next, "{states:?}");
        }
        for state in StoredState::ALL {
            let starts = OrderFacts::of([(1, state), (2, BLOCKED)]).next();
            let is_in_the_way = state.occupies_order() && state != BLOCKED;
            assert_eq!(starts.is_none(), is_in_the_way, "behind {state:?}");
        }
    }

    /// HUB-6: a dead letter that is handled releases its order, unless another one holds it: that may be a replay of an earlier
    /// one.
    #[test]
    fn hub_6_another_dead_letter_holds_the_order_still() {
        let released =
            |rows: &[(u64, StoredState)]| OrderFacts::of(rows.iter().copied()).next_when_released();
        assert_eq!(released(&[(6, BLOCKED)]), Some(6));
        assert_eq!(released(&[(6, BLOCKED), (9, HOLDING)]), None);
        assert_eq!(released(&[(6, BLOCKED), (9, LEASED)]), None);
    }

    /// HUB-6: a replay takes the place of its dead letter. If it is dead at once, those behind it go on.
    #[test]
    fn hub_6_a_replay_takes_the_place_of_its_dead_letter() {
        let after = |rows: &[(u64, StoredState)], replay| {
            OrderFacts::of(rows.iter().copied().chain([replay])).next_when_replayed(replay)
        };
        assert_eq!(after(&[], (9, BLOCKED)), Some(9));
        assert_eq!(
            after(&[(6, BLOCKED)], (9, BLOCKED)),
            Some(9),
            "before those that waited for the dead letter"
        );
        assert_eq!(after(&[(6, LEASED)], (9, BLOCKED)), None, "unless one of them is under way");
        assert_eq!(after(&[(3, HOLDING)], (9, BLOCKED)), None, "or another dead letter holds the order");
        assert_eq!(after(&[(6, BLOCKED)], (9, StoredState::DeadLettered)), Some(6), "dead at once");
        assert_eq!(after(&[(6, BLOCKED)], (9, StoredState::Waiting)), None, "it is under way by itself");
    }
}
