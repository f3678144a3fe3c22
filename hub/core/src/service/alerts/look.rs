//! What there is now, gathered for the rules.

use std::time::Duration;

use seawall::Tick;

use super::super::deliver::seen::state_of;
use super::super::hub::Hub;
use crate::domain::alert::{AlertRule, Condition, Counted, LogSeen, Scene, ServiceSeen, StoreSeen, Tally};
use crate::domain::service::Service;
use crate::domain::time::Millis;
use crate::port::store::{Due, Health, Store};
use crate::port::transport::Transport;

/// The store is asked what is due, and how many dead letters there are, so often.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// It counts no further than this.
const COUNT_MAX: u32 = 10_000;

/// What the last looks have seen.
#[derive(Debug, Default)]
pub(super) struct Eyes {
    warnings: Tally,
    errors: Tally,
    health: Health,
    counted: Option<(Tick, Option<Counted>)>,
    due: Option<(Tick, Option<Vec<Due>>)>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// What there is now. `now` is counted from the start of the loop; `log` is what the log has had in all.
    pub(super) async fn scene(&self, eyes: &mut Eyes, now: Duration, log: LogSeen) -> Scene {
        let rules: Vec<AlertRule> = self.alerts.rules().into_iter().filter(|rule| rule.enabled).collect();
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
        Scene {
            services: self.services_seen(eyes).await,
            dead_letters: self.dead_letters_within(eyes, &rules).await,
            warnings,
            errors,
            last_error: log.last_error,
            store: self.store_seen(eyes),
        }
    }

    async fn services_seen(&self, eyes: &mut Eyes) -> Vec<ServiceSeen> {
        let tick = self.clock.now();
        if eyes.due.as_ref().is_none_or(|(at, _)| tick.since(*at) >= COUNT_EVERY) {
            eyes.due = Some((tick, self.store.next_due().await.ok()));
        }
        let due = eyes.due.as_ref().and_then(|(_, due)| due.as_deref());
        let oldest = due.map(|due| self.oldest_due(due));
        let seen = |Service { name, paused, .. }: Service| {
            let guard = self.guard(&name);
            let breaker = guard.as_ref().and_then(|guard| guard.breaker());
            let reason = || breaker.and_then(|circuit| circuit.reason()).map(|reason| reason.to_string());
            ServiceSeen {
                circuit: breaker.map(|breaker| (state_of(breaker), reason())),
                oldest_due: oldest.as_ref().map(|oldest| oldest.get(&name).copied().unwrap_or_default()),
                paused,
                name,
            }
        };
        self.services().into_iter().map(seen).collect()
    }

    async fn dead_letters_within(&self, eyes: &mut Eyes, rules: &[AlertRule]) -> Option<Counted> {
        let mut windows: Vec<Duration> = rules
            .iter()
            .filter_map(|rule| match rule.condition {
                Condition::DeadLetters { window, .. } => Some(window),
                _ => None,
            })
            .collect();
        windows.sort();
        windows.dedup();
        let tick = self.clock.now();
        if let Some((at, Some(counted))) = &eyes.counted
            && tick.since(*at) < COUNT_EVERY
            && counted.iter().map(|(window, _)| *window).eq(windows.iter().copied())
        {
            return Some(counted.clone());
        }
        let mut counted = Some(Vec::new());
        for window in windows {
            let millis = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
            let since = Millis(self.now().0.saturating_sub(millis));
            let found = self.store.dead_since(since, COUNT_MAX).await.ok();
            counted = counted.zip(found).map(|(mut all, found)| {
                all.push((window, found));
                all
            });
        }
        eyes.counted = Some((tick, counted.clone()));
        counted
    }

    fn store_seen(&self, eyes: &mut Eyes) -> StoreSeen {
        let (before, health) = (eyes.health, self.store.health());
        eyes.health = health;
        StoreSeen {
            full: health.full || health.no_room > before.no_room,
            refused: health.refused.saturating_sub(before.refused),
            failed: health.failed.saturating_sub(before.failed),
            free_bytes: health.free_bytes,
        }
    }
}
