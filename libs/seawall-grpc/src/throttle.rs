//! `retryThrottling`: the tokens of one server name.

use std::sync::atomic::{AtomicU32, Ordering};

/// `retryThrottling` of a service config, in thousandths of a token: gRPC supports three decimals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RetryThrottling {
    /// The tokens that the server begins with, and that it never has more of.
    pub max_milli_tokens: u32,
    /// What a call that succeeds adds.
    pub milli_token_ratio: u32,
}

/// What a failure costs.
const FAILURE: u32 = 1_000;

/// The tokens of a server. Without throttling there are always enough.
#[derive(Debug)]
pub(crate) struct Tokens {
    settings: Option<RetryThrottling>,
    left: AtomicU32,
}

impl Tokens {
    pub(crate) fn new(settings: Option<RetryThrottling>) -> Self {
        let left = settings.map_or(0, |settings| settings.max_milli_tokens);
        Tokens { settings, left: AtomicU32::new(left) }
    }

    /// Counts a call that succeeded.
    pub(crate) fn succeeded(&self) {
        let Some(settings) = self.settings else { return };
        let full = settings.max_milli_tokens;
        // A full count is not written: it is the usual case, and every call of the channel comes here.
        let add =
            |left: u32| (left < full).then(|| left.saturating_add(settings.milli_token_ratio).min(full));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Counts an attempt that failed, and says whether another one may follow.
    pub(crate) fn failed(&self) -> bool {
        let take = |left: u32| Some(left.saturating_sub(FAILURE));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        self.has_enough()
    }

    /// Whether there are more than half of the tokens.
    pub(crate) fn has_enough(&self) -> bool {
        let Some(settings) = self.settings else { return true };
        u64::from(self.left.load(Ordering::Relaxed)) * 2 > u64::from(settings.max_milli_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(max: u32, ratio: u32) -> Tokens {
        Tokens::new(Some(RetryThrottling { max_milli_tokens: max, milli_token_ratio: ratio }))
    }

    /// A6: "Every failed RPC will decrement the token_count by 1." and "If token_count is less than or equal to the threshold,
    /// defined to be (maxTokens / 2), then RPCs will not be retried until token_count rises over the threshold."
    #[test]
    fn adp_2_at_half_of_the_tokens_nothing_is_retried() {
        let tokens = tokens(10_000, 100);
        let allowed: Vec<bool> = (0..6).map(|_| tokens.failed()).collect();
        assert_eq!(allowed, [true, true, true, true, false, false]);
        // 4 tokens are left: eleven successes bring it to 5.1.
        (0..10).for_each(|_| tokens.succeeded());
        assert!(!tokens.has_enough(), "exactly half is too few");
        tokens.succeeded();
        assert!(tokens.has_enough());
    }

    /// A6: the token_count "can take values between 0 and maxTokens".
    #[test]
    fn adp_2_tokens_stay_between_zero_and_the_maximum() {
        let tokens = tokens(2_000, 1_500);
        (0..9).for_each(|_| tokens.succeeded());
        assert_eq!(tokens.left.load(Ordering::Relaxed), 2_000);
        for _ in 0..9 {
            tokens.failed();
        }
        assert_eq!(tokens.left.load(Ordering::Relaxed), 0);
        tokens.succeeded();
        assert!(tokens.has_enough());
        assert!(Tokens::new(None).failed(), "without throttling there are always enough");
    }
}
