//! Settings that can't take effect together.
//!
//! Why they are refused: each alone is fine, and the guard would run. But a second attempt that never starts, or a call
//! that is never slow, is protection that somebody believes to have.

use std::time::Duration;

use super::recipe::Recipe;
use crate::breaker::Scope;
use crate::config::Problems;
use crate::timeout::{CallTimeout, Timeouts};

impl Recipe {
    /// Finds settings that never take effect because of a timeout.
    pub(super) fn refuse_impossible(&self, timeouts: &Timeouts, problems: &mut Problems) {
        let call = timeouts.call.map(|time| ("call", time));
        let attempt = timeouts.attempt.map(|time| ("attempt", time));
        if let Some(hedge) = &self.hedge {
            let (path, delay) = hedge.first_delay();
            // The shorter one ends the first attempt.
            let ends = attempt.into_iter().chain(call).min_by_key(|(_, time)| *time);
            let late = ends.filter(|(_, end)| !end.is_zero() && delay >= *end);
            if let Some((which, end)) = late {
                let reason = format!(
                    "the second attempt would start after {delay:?}, when the {which} timeout of {end:?} has ended the \
                     first; start it earlier"
                );
                problems.add(path, reason);
            }
        }
        let slow_after =
            self.breaker.as_ref().and_then(|breaker| Some((breaker.scope, breaker.slow_threshold()?)));
        if let Some((scope, slow_after)) = slow_after {
            let limit = if scope == Scope::Call { call } else { attempt.or(call) };
            if let Some((which, limit)) = limit.filter(|(_, limit)| !limit.is_zero() && slow_after > *limit) {
                let reason = format!(
                    "nothing takes {slow_after:?} or more under the {which} timeout of {limit:?}, so nothing is ever \
                     slow; lower it or raise the timeout"
                );
                problems.add("breaker.slow_after", reason);
            }
        }
        self.refuse_waits(problems);
    }

    /// A call timeout that is not set leaves time for the waits.
    fn refuse_waits(&self, problems: &mut Problems) {
        let CallTimeout::Set(call) = self.call_timeout else { return };
        let waits = [
            ("bulkhead.max_wait", self.bulkhead.map(|bulkhead| bulkhead.max_wait)),
            ("rate_limit.max_wait", self.rate_limit.map(|limit| limit.max_wait)),
        ];
        for (path, wait) in waits {
            let wait = wait.unwrap_or(Duration::ZERO);
            problems.refuse_if(!call.is_zero() && wait >= call, path, || {
                format!(
                    "a wait of up to {wait:?} does not fit into the call timeout of {call:?}; wait shorter or allow the \
                     call more time"
                )
            });
        }
    }
}
