//! What there is now, gathered for the rules.

use std::time::Duration;

use seawall::Tick;

use crate::domain::alert::{
    AlertRule, Condition, GrowthWindow, LogCounts, ServiceCondition, StoreCondition, SystemSnapshot,
    WindowCounts,
};
use crate::domain::service::Service;
use crate::domain::time::Millis;
use crate::port::store::{DueTimes, Store, StoreHealth};
use crate::port::transport::Transport;
use crate::service::dispatch::circuit::state_of;
use crate::service::handles::{AlertHandle, OpsHandle};

/// How often the store is asked for due times and dead letters.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// The number up to which dead letters are counted.
const COUNT_MAX: u32 = 10_000;

/// The results of the last observations.
#[derive(Debug, Default)]
pub(super) struct ObservationCache {
    warnings: GrowthWindow,
    errors: GrowthWindow,
    health: StoreHealth,
    counted: Option<(Tick, Option<WindowCounts>)>,
    due: Option<(Tick, Option<Vec<DueTimes>>)>,
}

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Observes the system. `now` is counted from the start of the loop; `log` has the total counts of the log.
    pub(super) async fn scene(
        &self,
        eyes: &mut ObservationCache,
        now: Duration,
        log: LogCounts,
    ) -> SystemSnapshot {
        let rules: Vec<AlertRule> =
            self.core.alerts.rules().into_iter().filter(|rule| rule.enabled).collect();
        eyes.warnings.note(now, log.warnings);
        // One of them is enough, so those of the start count too.
        eyes.errors.note(Duration::ZERO, 0);
        eyes.errors.note(now, log.errors);
        let (mut warnings, mut errors) = (Vec::new(), Vec::new());
        for rule in &rules {
            match rule.condition {
                Condition::Warnings { window, .. } => {
                    warnings.push((window, eyes.warnings.within(now, window, log.warnings)));
                }
                Condition::Errors { window, .. } => {
                    errors.push((window, eyes.errors.within(now, window, log.errors)));
                }
                _ => {}
            }
        }
        SystemSnapshot {
            services: self.services_seen(eyes).await,
            dead_letters: self.dead_letters_within(eyes, &rules).await,
            warnings,
            errors,
            last_error: log.last_error,
            store: self.store_seen(eyes),
        }
    }

    async fn services_seen(&self, eyes: &mut ObservationCache) -> Vec<ServiceCondition> {
        let tick = self.core.clock.now();
        if eyes.due.as_ref().is_none_or(|(at, _)| tick.since(*at) >= COUNT_EVERY) {
            eyes.due = Some((tick, self.core.store.next_due().await.ok()));
        }
        let due = eyes.due.as_ref().and_then(|(_, due)| due.as_deref());
        let oldest = due.map(|due| OpsHandle::over(&self.core).oldest_due(due));
        let seen = |Service { name, paused, .. }: Service| {
            let guard = self.core.deliver.guard(&name);
            let breaker = guard.as_ref().and_then(|guard| guard.breaker());
            let reason = || breaker.and_then(|circuit| circuit.reason()).map(|reason| reason.to_string());
            ServiceCondition {
                circuit: breaker.map(|breaker| (state_of(breaker), reason())),
                oldest_due: oldest.as_ref().map(|oldest| oldest.get(&name).copied().unwrap_or_default()),
                paused,
                name,
            }
        };
        self.core.services().into_iter().map(seen).collect()
    }

    async fn dead_letters_within(
        &self,
        eyes: &mut ObservationCache,
        rules: &[AlertRule],
    ) -> Option<WindowCounts> {
        let mut windows: Vec<Duration> = rules
            .iter()
            .filter_map(|rule| match rule.condition {
                Condition::DeadLetters { window, .. } => Some(window),
                _ => None,
            })
            .collect();
        windows.sort();
        windows.dedup();
        let tick = self.core.clock.now();
        if let Some((at, Some(counted))) = &eyes.counted
            && tick.since(*at) < COUNT_EVERY
            && counted.iter().map(|(window, _)| *window).eq(windows.iter().copied())
        {
            return Some(counted.clone());
        }
        let mut counted = Some(Vec::new());
        for window in windows {
            let millis = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
            let since = Millis(self.core.now().0.saturating_sub(millis));
            let found = self.core.store.dead_since(since, COUNT_MAX).await.ok();
            counted = counted.zip(found).map(|(mut all, found)| {
                all.push((window, found));
                all
            });
        }
        eyes.counted = Some((tick, counted.clone()));
        counted
    }

    fn store_seen(&self, eyes: &mut ObservationCache) -> StoreCondition {
        let (before, health) = (eyes.health, self.core.store.health());
        eyes.health = health;
        StoreCondition {
            full: health.full || health.no_room > before.no_room,
            refused: health.refused.saturating_sub(before.refused),
            failed: health.failed.saturating_sub(before.failed),
            free_bytes: health.free_bytes,
        }
    }
}
