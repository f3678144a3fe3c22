//! Why a call through the gateway has no answer, in one table: status, code, who decided, when to come back.

use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use seawall::fault::Class;
use seawall::{Error, Kind, Policy, Ran};

/// Who decided that there is no answer of the upstream.
pub(crate) const DECIDED_BY: HeaderName = HeaderName::from_static("seawall-decided-by");
/// The default `Retry-After` of a refusal.
const COME_BACK: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GatewayRefusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) decided_by: &'static str,
    pub(crate) retry_after: Option<Duration>,
}

/// What the last attempt said, if there was one that ended by itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct LastFailure<'a> {
    /// In words, without secrets.
    pub(crate) error: Option<&'a str>,
    /// It can never be sent.
    pub(crate) impossible: bool,
    /// The answer is larger than anybody wants to hold.
    pub(crate) too_large: bool,
    /// There was no memory left for the answer.
    pub(crate) no_memory: bool,
}

impl GatewayRefusal {
    /// What an error of a guard means to whoever called through it.
    pub(crate) fn of<E>(error: &Error<E>, last: LastFailure<'_>) -> Self {
        let decided_by = word(error.decided_by());
        let refusal = |status, code, retryable, message: String| GatewayRefusal {
            status,
            code,
            message,
            retryable,
            decided_by,
            retry_after: error.retry_after(),
        };
        let said = || last.error.map_or_else(|| error.to_string(), |said| format!("{error}: {said}"));
        if error.kind() == Kind::Rejected {
            let (status, code) = match error.decided_by() {
                Policy::RateLimit => (StatusCode::TOO_MANY_REQUESTS, "rateLimited"),
                Policy::Bulkhead => (StatusCode::SERVICE_UNAVAILABLE, "bulkheadFull"),
                _ => (StatusCode::SERVICE_UNAVAILABLE, "circuitOpen"),
            };
            let mut refused = refusal(status, code, true, error.to_string());
            refused.retry_after = Some(refused.retry_after.unwrap_or(COME_BACK));
            return refused;
        }
        if last.impossible {
            let message =
                "the service can't be called: its address is forbidden, or its credentials can't be used";
            return refusal(StatusCode::BAD_GATEWAY, "impossible", false, message.into());
        }
        if last.no_memory {
            let mut dropped = refusal(StatusCode::SERVICE_UNAVAILABLE, "responseDropped", false, said());
            dropped.decided_by = "hub";
            return dropped;
        }
        if last.too_large {
            return refusal(StatusCode::BAD_GATEWAY, "tooLarge", false, said());
        }
        if error.last_fault().class() == Class::Timeout {
            return refusal(StatusCode::GATEWAY_TIMEOUT, "timeout", true, said());
        }
        let code = if error.ran() == Ran::No { "noConnection" } else { "broken" };
        refusal(StatusCode::BAD_GATEWAY, code, true, said())
    }

    /// The service is paused.
    pub(crate) fn paused() -> Self {
        GatewayRefusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "paused",
            message: "the service is paused; resume it first".into(),
            retryable: true,
            decided_by: "hub",
            retry_after: None,
        }
    }

    /// Something that the gateway itself does not do or take.
    pub(crate) fn own(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let (message, retryable) = (message.into(), false);
        GatewayRefusal { status, code, message, retryable, decided_by: "hub", retry_after: None }
    }

    /// Who decided, and when to come back.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(DECIDED_BY, HeaderValue::from_static(self.decided_by));
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never too early.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
    }
}

/// In one word that can stand in a header.
fn word(policy: Policy) -> &'static str {
    match policy {
        Policy::CallTimeout => "call-timeout",
        Policy::Retry => "retry",
        Policy::Budget => "retry-budget",
        Policy::Breaker => "breaker",
        Policy::RateLimit => "rate-limit",
        Policy::Bulkhead => "bulkhead",
        Policy::AttemptTimeout => "attempt-timeout",
        _ => "upstream",
    }
}
