//! What a call leaves behind: tokens, metrics, log lines and spans, each once, also if the caller drops it.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use seawall::Tick;
use tonic::Code;

use crate::channel::Shared;
use crate::config::MethodConfig;
use crate::log::Line;
use crate::metrics::MethodMetrics;
use crate::policy::{CallPolicy, Failure, Pushback, Reason};
use crate::replay::BufferLimits;
use crate::throttle::Tokens;

pub(crate) use crate::span::AttemptSpan;

/// What is known about a method: what the service config says, and the handles of its metrics.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) path: Box<str>,
    pub(crate) config: MethodConfig,
    pub(crate) metrics: MethodMetrics,
}

/// The record of one call.
pub(crate) struct CallRecord {
    shared: Arc<Shared>,
    method: Arc<Method>,
    started: Tick,
    attempts: u32,
    is_finished: bool,
}

impl CallRecord {
    pub(crate) fn start(shared: Arc<Shared>, method: Arc<Method>) -> Self {
        let started = shared.clock.precise();
        CallRecord { shared, method, started, attempts: 0, is_finished: false }
    }

    pub(super) fn config(&self) -> &MethodConfig {
        &self.method.config
    }

    pub(super) fn policy(&self) -> &CallPolicy {
        &self.method.config.policy
    }

    pub(super) fn limits(&self) -> &Arc<BufferLimits> {
        &self.shared.limits
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.shared.tokens
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.shared.clock.precise().since(self.started)
    }

    pub(super) fn chance(&self) -> f64 {
        self.shared.chance.next()
    }

    /// The counted attempts so far.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The record, for whoever goes on with the call.
    pub(super) fn take(&mut self) -> Self {
        let is_finished = std::mem::replace(&mut self.is_finished, true);
        let (shared, method) = (self.shared.clone(), self.method.clone());
        CallRecord { shared, method, started: self.started, attempts: self.attempts, is_finished }
    }

    /// An attempt is sent.
    pub(super) fn attempt(&mut self, number: u32) -> AttemptSpan {
        self.attempts = number;
        self.method.metrics.attempt();
        AttemptSpan::start(&self.method.path, number)
    }

    /// A retry or a hedge is sent.
    pub(super) fn next_attempt(&self, number: u32) {
        if matches!(self.policy(), CallPolicy::Hedging(_)) {
            self.method.metrics.hedge();
            self.shared.log.write(&Line::Hedge { method: &self.method.path, attempt: number });
        } else {
            self.method.metrics.retry();
        }
    }

    /// A retry will be sent after a pause.
    pub(super) fn retries(&self, code: Code, attempt: u32, wait: Duration) {
        self.shared.log.write(&Line::Retry { method: &self.method.path, attempt, wait, code });
    }

    /// What the server's application never saw is sent again.
    pub(super) fn resends(&self, failure: Failure, wait: Option<Duration>) {
        self.method.metrics.transparent_retry();
        let (method, wait) = (&self.method.path, wait.unwrap_or_default());
        self.shared.log.write(&Line::Resend { method, wait, code: Code::from_i32(failure.code) });
    }

    pub(super) fn pushed_back(&self, pushback: Pushback) {
        match pushback {
            Pushback::Nothing => {}
            Pushback::After(_) => self.method.metrics.pushback_delay(),
            Pushback::Stop => self.method.metrics.pushback_stop(),
        }
    }

    /// Takes a token if the failure is one that says something about the server, and tells whether another attempt may follow.
    pub(super) fn count(&self, failure: Failure) -> bool {
        if self.policy().allows(failure.code) || failure.pushback == Pushback::Stop {
            self.tokens().failed()
        } else {
            self.tokens().has_enough()
        }
    }

    /// The request outgrew what may be kept of it, so that nothing can be sent again.
    pub(super) fn outgrown(&self) {
        self.shared.log.write(&Line::Outgrown { method: &self.method.path });
    }

    pub(super) fn given_up(&self, code: Code, reason: Reason) {
        if reason == Reason::Throttled {
            self.throttled(Some(code));
        }
    }

    /// Another attempt was not sent, because too few tokens are left.
    pub(super) fn throttled(&self, code: Option<Code>) {
        self.method.metrics.throttled();
        self.shared.log.write(&Line::Throttled { method: &self.method.path, code });
    }

    /// The call failed, which is worth a line.
    pub(super) fn failed(&mut self, code: Code, cause: Option<&(dyn StdError + 'static)>) {
        if !self.is_finished {
            let (method, attempts, duration) = (&self.method.path, self.attempts, self.elapsed());
            self.shared.log.write(&Line::Failed { method, code, attempts, duration, cause });
        }
        self.finish(code);
    }

    /// The call is over. Later words change nothing.
    pub(super) fn finish(&mut self, code: Code) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        if code == Code::Ok {
            self.shared.tokens.succeeded();
        }
        self.method.metrics.finished(code, self.elapsed());
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        self.finish(Code::Cancelled);
    }
}
