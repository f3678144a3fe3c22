//! Enums whose values have a stable word each, on the wire and in the store.

/// Defines an enum with the word of each variant: `ALL`, `word` and `from_word`.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visible:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        $visible enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            $visible const ALL: [$name; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns its stable word in the API and in the store.
            #[must_use]
            $visible const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses its stable word.
            #[must_use]
            $visible fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::domain::alert::{ConditionKind, NoticeKind, Severity};
    use crate::domain::circuit::CircuitState;
    use crate::domain::dead_letter::{GroupState, LetterState};
    use crate::domain::delivery::DeadLetterReason;
    use crate::domain::key::Scope;
    use crate::domain::operation::OperationState;

    /// HUB-14: the words of the API and of the store are those of version 1.
    #[test]
    fn hub_14_words_are_stable() {
        fn check<T: Copy + PartialEq + std::fmt::Debug, const N: usize>(
            all: [T; N],
            word: fn(T) -> &'static str,
            from_word: fn(&str) -> Option<T>,
            expected: &str,
        ) {
            assert_eq!(all.map(word).join(" "), expected);
            assert!(all.iter().all(|one| from_word(word(*one)) == Some(*one)));
            assert_eq!((from_word(""), from_word("Open")), (None, None));
        }
        macro_rules! check {
            ($($name:ident: $words:literal),+ $(,)?) => {
                $(check($name::ALL, $name::word, $name::from_word, $words);)+
            };
        }
        check! {
            Scope: "ingest call read operate admin",
            OperationState: "running paused done cancelled stopped",
            Severity: "warning critical",
            ConditionKind: "circuitOpen deadLetters oldestDue warnings errors dataLossRisk",
            NoticeKind: "opened resolved",
            DeadLetterReason: "refused gone impossible attempts age deleted poison",
            LetterState: "open replaying delivered failedAgain parked deleted",
            GroupState: "open acknowledged resolved",
            CircuitState: "closed open halfOpen forcedOpen forcedClosed",
        }
    }
}
