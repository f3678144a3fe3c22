//! What the keys of resilience4j are.

use super::super::super::assume;
use super::super::super::value::Value;
use Kind::{Base, Count, Java, Names, Number, Share, Switch, Time, Word};

#[derive(Debug)]
pub(super) struct Module {
    pub(super) name: &'static str,
    /// The section that it becomes.
    pub(super) policy: &'static str,
    pub(super) keys: &'static [Known],
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Time,
    Share,
    Count,
    Number,
    Switch,
    Word(&'static [&'static str]),
    /// Names of exceptions.
    Names,
    /// The name of a base.
    Base,
    /// Means something to the Java virtual machine only; says what to do here.
    Java(&'static str),
}

impl Known {
    /// What to write, for somebody who wrote a list or a section.
    pub(super) fn wanted(&self) -> &'static str {
        match self.kind {
            Time => "write a duration like `30s`, or milliseconds",
            Share => "write percent, like `50`",
            Count => "write a whole number like `3`",
            Number => "write a number like `1.5`",
            Switch => "write `true` or `false`",
            Names => "write names of exceptions",
            Word(_) | Base | Java(_) => "write a word",
        }
    }
}

impl Known {
    /// A small and a large value, for one that can't be read.
    pub(super) fn guesses(&self) -> Option<[Value; 2]> {
        Some(match self.kind {
            Time => assume::TIMES,
            Share => assume::SHARES,
            Count => assume::COUNTS,
            Number => assume::NUMBERS,
            Switch => assume::SWITCHES,
            Word(words) => return assume::words(words),
            Names | Base | Java(_) => return None,
        })
    }
}

const fn known(name: &'static str, kind: Kind) -> Known {
    Known { name, kind }
}

const FAULTS: Kind =
    Java("faults are judged by their class and their name here, see `Classify` and `record_names`");
const RETRIED: Kind =
    Java("faults are judged by their class and their name here, see `Classify`, `on_classes` and `on_names`");
const RESULTS: Kind = Java("a result is judged in code, see `Classify`");
const EVENTS: Kind = Java("events have no buffer here");
const STACKS: Kind = Java("errors have no stack trace here");
const HEALTH_FAILS: Kind = Java("what health makes of a guard is decided where health is asked for");
const INTERVALS: Kind = Java("waits are not computed by code here; write them as a back-off");

const NO_HEALTH: Kind = Java("only a circuit breaker or a rate limiter makes a guard part of the health");

pub(super) const EVERYWHERE: &[Known] = &[
    known("baseConfig", Base),
    known("eventConsumerBufferSize", EVENTS),
    known("registerHealthIndicator", NO_HEALTH),
];

pub(super) const MODULES: &[Module] = &[
    Module {
        name: "circuitbreaker",
        policy: "breaker",
        keys: &[
            known("failureRateThreshold", Share),
            known("slowCallRateThreshold", Share),
            known("slowCallDurationThreshold", Time),
            known("slidingWindowType", Word(&["COUNT_BASED", "TIME_BASED"])),
            known("slidingWindowSize", Count),
            known("minimumNumberOfCalls", Count),
            known("permittedNumberOfCallsInHalfOpenState", Count),
            known("maxWaitDurationInHalfOpenState", Time),
            known("waitDurationInOpenState", Time),
            known("automaticTransitionFromOpenToHalfOpenEnabled", Switch),
            known("enableExponentialBackoff", Switch),
            known("exponentialBackoffMultiplier", Number),
            known("exponentialMaxWaitDurationInOpenState", Time),
            known("enableRandomizedWait", Switch),
            known("randomizedWaitFactor", Number),
            known("registerHealthIndicator", Switch),
            known("allowHealthIndicatorToFail", HEALTH_FAILS),
            known("writableStackTraceEnabled", STACKS),
            known("initialState", Java("a circuit begins closed; restore a snapshot for another state")),
            known("transitionToStateAfterWaitDuration", Java("a circuit that was open always probes first")),
            known("recordExceptions", Names),
            known("ignoreExceptions", Names),
            known("recordFailurePredicate", FAULTS),
            known("recordExceptionPredicate", FAULTS),
            known("ignoreExceptionPredicate", FAULTS),
            known("recordResultPredicate", RESULTS),
            known("ignoreClassBindingExceptions", FAULTS),
        ],
    },
    Module {
        name: "retry",
        policy: "retry",
        keys: &[
            known("maxAttempts", Count),
            known("maxRetryAttempts", Count),
            known("waitDuration", Time),
            known("enableExponentialBackoff", Switch),
            known("exponentialBackoffMultiplier", Number),
            known("exponentialMaxWaitDuration", Time),
            known("enableRandomizedWait", Switch),
            known("randomizedWaitFactor", Number),
            known("retryExceptions", Names),
            known("ignoreExceptions", Names),
            known("retryExceptionPredicate", RETRIED),
            known("ignoreClassBindingExceptions", RETRIED),
            known("resultPredicate", RESULTS),
            known("consumeResultBeforeRetryAttempt", RESULTS),
            known("intervalBiFunction", INTERVALS),
            known("failAfterMaxAttempts", Java("spent attempts are always an error here")),
        ],
    },
    Module {
        name: "timelimiter",
        policy: "attempt_timeout",
        keys: &[known("timeoutDuration", Time), known("cancelRunningFuture", Switch)],
    },
    Module {
        name: "bulkhead",
        policy: "bulkhead",
        keys: &[
            known("maxConcurrentCalls", Count),
            known("maxWaitDuration", Time),
            known("fairCallHandlingStrategyEnabled", Switch),
            known("writableStackTraceEnabled", STACKS),
        ],
    },
    Module {
        name: "ratelimiter",
        policy: "rate_limit",
        keys: &[
            known("limitForPeriod", Count),
            known("limitRefreshPeriod", Time),
            known("timeoutDuration", Time),
            known("registerHealthIndicator", Switch),
            known("allowHealthIndicatorToFail", HEALTH_FAILS),
            known("subscribeForEvents", EVENTS),
            known("writableStackTraceEnabled", STACKS),
            known("drainPermissionsOnResult", RESULTS),
        ],
    },
];
