//! The numbers of states, reasons and actions in columns. They never change: databases of all earlier versions have them.

use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupState, LetterState};
use seawall_hub_core::domain::delivery::suspects::HandlingStep;
use seawall_hub_core::domain::delivery::{DeadLetterReason, StoredState};
use seawall_hub_core::domain::operation::OperationState;

use super::UnreadableValue;

/// A value of the domain that a column holds as a number.
pub(crate) trait StoredNumber: Copy + 'static {
    /// The noun for it in an error.
    const NOUN: &'static str;
    const VALUES: &'static [Self];

    fn to_number(self) -> i64;

    fn from_number(number: i64) -> Result<Self, UnreadableValue> {
        let value = Self::VALUES.iter().copied().find(|value| value.to_number() == number);
        value.ok_or_else(|| UnreadableValue::new(Self::NOUN, number))
    }
}

macro_rules! numbers {
    ($($name:ident: $noun:literal = $to_number:expr),+ $(,)?) => {$(
        impl StoredNumber for $name {
            const NOUN: &'static str = $noun;
            const VALUES: &'static [Self] = &$name::ALL;

            fn to_number(self) -> i64 {
                $to_number(self)
            }
        }
    )+};
}

numbers! {
    StoredState: "state of a delivery" = |state| state as i64,
    LetterState: "state of a dead letter" = |state| state as i64,
    GroupState: "state of a group" = |state| state as i64,
    OperationState: "state of an operation" = |state| state as i64,
    DeadLetterReason: "reason of a dead letter" = reason_to_number,
    HandlingStep: "step of handling a delivery" = |step| i64::from(HandlingStep::number(step)),
}

fn reason_to_number(reason: DeadLetterReason) -> i64 {
    match reason {
        DeadLetterReason::Refused => 0,
        DeadLetterReason::Gone => 1,
        DeadLetterReason::Impossible => 2,
        DeadLetterReason::Attempts => 3,
        DeadLetterReason::Age => 4,
        DeadLetterReason::Deleted => 5,
        DeadLetterReason::Poison => 6,
    }
}

/// Returns the number of a step; 0 stands for none.
pub(crate) fn step_to_number(step: Option<HandlingStep>) -> i64 {
    step.map_or(0, StoredNumber::to_number)
}

/// Returns the step with this number, if there is one.
pub(crate) fn step_from_number(number: i64) -> Option<HandlingStep> {
    HandlingStep::from_number(number).ok()
}

pub(crate) const fn fingerprint_to_number(fingerprint: Fingerprint) -> i64 {
    fingerprint.0.cast_signed()
}

pub(crate) const fn fingerprint_from_number(number: i64) -> Fingerprint {
    Fingerprint(number.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::part;

    fn numbers<T: StoredNumber>() -> String {
        T::VALUES.iter().map(|value| value.to_number().to_string()).collect()
    }

    /// HUB-14: the numbers in statements are those of the rows, and those of the first version of the tables.
    #[test]
    fn hub_14_a_state_has_one_number() {
        let deliveries = [
            part!(LEASED),
            part!(QUEUED),
            part!(WAITING),
            part!(STALLED),
            part!(BLOCKED),
            part!(HELD),
            part!(HOLDING),
            part!(DELIVERED),
            part!(DEAD),
        ];
        assert_eq!(deliveries.concat(), "012345678");
        assert_eq!(StoredState::ALL.map(|state| state.to_number().to_string()), deliveries);
        for (state, number) in [
            (LetterState::Replaying, part!(LETTER_REPLAYING)),
            (LetterState::Delivered, part!(LETTER_DELIVERED)),
            (LetterState::FailedAgain, part!(LETTER_FAILED_AGAIN)),
            (LetterState::Deleted, part!(LETTER_DELETED)),
        ] {
            assert_eq!(state.to_number().to_string(), number);
        }
        assert_eq!(numbers::<LetterState>(), "012345");
        assert_eq!(numbers::<GroupState>(), "012");
        assert_eq!(numbers::<OperationState>(), "01234");
        assert_eq!(numbers::<DeadLetterReason>(), "0123456");
        assert_eq!(numbers::<HandlingStep>(), "123");
    }

    /// HUB-14: a number that this version does not know is an error that names it.
    #[test]
    fn hub_14_a_number_comes_back_as_its_value_or_is_named() {
        for state in LetterState::ALL {
            assert_eq!(LetterState::from_number(state.to_number()), Ok(state));
        }
        let unknown = GroupState::from_number(9).unwrap_err().to_string();
        assert_eq!(unknown, "`9` is not a known state of a group");
        assert_eq!([0, 1, 9].map(step_from_number), [None, Some(HandlingStep::Load), None]);
        assert_eq!(step_to_number(Some(HandlingStep::Record)), 3);
        let fingerprint = Fingerprint(u64::MAX - 1);
        assert_eq!(fingerprint_from_number(fingerprint_to_number(fingerprint)), fingerprint);
    }
}
