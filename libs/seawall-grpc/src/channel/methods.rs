//! What the calls of a channel share.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use seawall::Clock;

use super::builder::Settings;
use crate::call::Method;
use crate::config::ServiceConfig;
use crate::log::ChannelLog;
use crate::metrics::MethodMetrics;
use crate::policy::CallPolicy;
use crate::replay::BufferLimits;
use crate::throttle::Tokens;

/// The number of methods that have metrics of their own. Paths come from the program, but nothing keeps it from making them up.
const METHODS_MAX: usize = 1_000;
/// The method of all further calls in metrics and log lines.
const OTHER: &str = "_OTHER";

#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) server: String,
    pub(super) config: ServiceConfig,
    attempts_max: u32,
    retries: bool,
    methods: RwLock<HashMap<Box<str>, Arc<Method>>>,
    pub(crate) limits: Arc<BufferLimits>,
    pub(crate) tokens: Tokens,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) log: ChannelLog,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let limits = BufferLimits {
            call_bytes_max: settings.call_buffer_bytes_max,
            channel_bytes_max: settings.channel_buffer_bytes_max,
            channel_bytes: AtomicUsize::new(0),
        };
        Shared {
            attempts_max: settings.attempts_max,
            retries: settings.retries,
            methods: RwLock::default(),
            limits: Arc::new(limits),
            tokens: Tokens::new(settings.config.throttling()),
            clock: Clock::default(),
            chance: Chance::new(settings.seed),
            log: ChannelLog::new(&settings.server, settings.lines_per_second),
            server: settings.server,
            config: settings.config,
        }
    }

    /// The method with this path. What is known about it is looked up once.
    pub(super) fn method(&self, path: &str) -> Arc<Method> {
        let methods = self.methods.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(method) = methods.get(path) {
            return method.clone();
        }
        let is_full = methods.len() >= METHODS_MAX;
        drop(methods);
        let method = Arc::new(self.make(path, if is_full { OTHER } else { path }));
        if !is_full {
            let mut methods = self.methods.write().unwrap_or_else(PoisonError::into_inner);
            methods.insert(path.into(), method.clone());
        }
        method
    }

    fn make(&self, path: &str, label: &str) -> Method {
        let mut config = self.config.method(path).cloned().unwrap_or_default();
        config.policy = if self.retries { config.policy.capped(self.attempts_max) } else { CallPolicy::None };
        Method { path: label.into(), config, metrics: MethodMetrics::new(&self.server, label) }
    }
}

/// Where the jitter comes from: SplitMix64, whose state is one number that many threads may draw from.
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    fn new(seed: Option<u64>) -> Self {
        Chance(AtomicU64::new(seed.unwrap_or_else(|| RandomState::new().hash_one(Chance::STEP))))
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn next(&self) -> f64 {
        let word = self.0.fetch_add(Chance::STEP, Ordering::Relaxed).wrapping_add(Chance::STEP);
        let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // The upper 53 bits are what an f64 can hold exactly.
        ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
