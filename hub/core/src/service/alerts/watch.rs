//! The loop: what there is, what the rules say of it, and who has to be told.

use std::collections::HashSet;
use std::time::Duration;

use metrics::gauge;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::observe::ObservationCache;
use super::{LiveIncident, LiveIncidents};
use crate::domain::alert::{AlertRule, Incident, LogCounts, NoticeKind, Reading, SystemSnapshot};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::encode::hex;
use crate::metric_names;
use crate::port::notify::Notifier;
use crate::port::store::{Change, Store, UnitOfWork, WritePriority};
use crate::port::transport::Transport;
use crate::service::handles::AlertHandle;

/// How often everything is observed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often unsaved incidents are offered to the store again.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// How often the development of an open incident is stored at most.
const UPDATE_EVERY: Duration = Duration::from_secs(60);
/// The maximum number of messages that wait for a channel; the oldest is dropped.
const WAITING_MAX: usize = 500;

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Observes everything and notifies people, for as long as the process lives. `log` returns the total counts of the log.
    pub async fn watch_alerts<N: Notifier>(&self, notifier: &N, log: impl Fn() -> LogCounts) {
        let (mut eyes, mut sending, mut busy) = (ObservationCache::default(), JoinSet::new(), HashSet::new());
        let began = self.core.clock.now();
        let mut saved = None;
        loop {
            let now = self.core.clock.now().since(began);
            let scene = self.scene(&mut eyes, now, log()).await;
            self.judge(&scene, now).await;
            if saved.is_none_or(|saved| now.saturating_sub(saved) >= SAVE_EVERY) {
                self.save(&mut *self.core.alerts.live.lock().await).await;
                saved = Some(now);
            }
            self.send_due(notifier, &mut sending, &mut busy).await;
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.core.alerts.wake.notified() => {}
                Some(ended) = sending.join_next(), if !sending.is_empty() => self.sent(ended, &mut busy).await,
            }
        }
    }

    /// Sets the gauges of open incidents.
    pub(in crate::service) async fn record_alerts(&self) {
        let live = self.core.alerts.live.lock().await;
        for rule in self.core.alerts.rules() {
            let open =
                |tracked: &&LiveIncident| tracked.incident.rule == rule.name && tracked.incident.is_open();
            let count = live.incidents.values().filter(open).count();
            let (name, severity) = (rule.name.to_string(), rule.severity.word());
            gauge!(metric_names::ALERTS_OPEN, "rule" => name, "severity" => severity).set(count as f64);
        }
    }

    async fn judge(&self, scene: &SystemSnapshot, now: Duration) {
        let wall = self.core.now();
        let mut live = self.core.alerts.live.lock().await;
        let mut changed = false;
        for rule in self.core.alerts.rules().into_iter().filter(|rule| rule.enabled) {
            for reading in rule.look(scene).unwrap_or_default() {
                changed |= live.judge(&rule, &reading, now, wall);
            }
            changed |= live.resolve_obsolete(&rule, scene, wall);
            if !rule.is_muted(wall) {
                changed |= live.tell(&rule.name, &self.core.alerts.told_by(&rule), wall);
            }
        }
        live.tracks.retain(|_, track| !track.is_idle());
        if changed {
            live.bound();
            self.save(&mut live).await;
        }
    }

    /// Stores incidents that the store does not have yet. If it refuses, that is for the next time: people are notified all the
    /// same.
    pub(super) async fn save(&self, live: &mut LiveIncidents) {
        let unsaved: Vec<Change> = live
            .incidents
            .values()
            .filter(|tracked| !tracked.saved)
            .map(|tracked| Change::PutIncident(Box::new(tracked.incident.clone())))
            .collect();
        if unsaved.is_empty()
            || self.core.store.commit(WritePriority::Admin, UnitOfWork { changes: unsaved }).await.is_err()
        {
            return;
        }
        live.saved();
    }
}

impl LiveIncidents {
    fn judge(&mut self, rule: &AlertRule, reading: &Reading, now: Duration, wall: Millis) -> bool {
        let of = (rule.name.clone(), reading.service.clone());
        let track = self.tracks.entry(of).or_default();
        let turn = track.step(reading.bad, now, rule.holds, rule.clears);
        let is_open = track.is_open();
        match turn {
            Some(NoticeKind::Opened) => {
                let incident = opened(rule, reading, wall);
                self.incidents.insert(incident.id.clone(), LiveIncident { incident, saved: false });
                true
            }
            Some(NoticeKind::Resolved) => {
                self.resolve(&rule.name, reading.service.as_ref(), &reading.summary, wall)
            }
            None if is_open && reading.bad => self.update(rule, reading, wall),
            None => false,
        }
    }

    fn open_of<'a>(
        &'a mut self,
        rule: &'a Slug,
        service: Option<&'a Slug>,
    ) -> impl Iterator<Item = &'a mut LiveIncident> {
        self.incidents.values_mut().filter(move |tracked| {
            let Incident { rule: by, service: of, .. } = &tracked.incident;
            by == rule && of.as_ref() == service && tracked.incident.is_open()
        })
    }

    fn resolve(&mut self, rule: &Slug, service: Option<&Slug>, because: &str, wall: Millis) -> bool {
        let mut changed = false;
        for tracked in self.open_of(rule, service) {
            tracked.incident.resolve(because, wall);
            tracked.saved = false;
            changed = true;
        }
        changed
    }

    fn update(&mut self, rule: &AlertRule, reading: &Reading, wall: Millis) -> bool {
        let mut changed = false;
        for tracked in self.open_of(&rule.name, reading.service.as_ref()) {
            let incident = &mut tracked.incident;
            if wall.since(incident.updated) >= UPDATE_EVERY && incident.summary != reading.summary {
                (incident.updated, incident.value) = (wall, reading.value);
                incident.summary.clone_from(&reading.summary);
                (tracked.saved, changed) = (false, true);
            }
        }
        changed
    }

    /// Resolves incidents of services that no longer exist, or that the rule no longer covers.
    fn resolve_obsolete(&mut self, rule: &AlertRule, scene: &SystemSnapshot, wall: Millis) -> bool {
        let reason = |incident: &Incident| match &incident.service {
            Some(name) if !scene.services.iter().any(|seen| seen.name == *name) => {
                Some("the service was deleted")
            }
            of if !rule.covers(of.as_ref()) => Some("the rule is not about this service any more"),
            _ => None,
        };
        let mut changed = false;
        for tracked in self.incidents.values_mut() {
            let incident = &mut tracked.incident;
            if incident.rule != rule.name || !incident.is_open() {
                continue;
            }
            if let Some(reason) = reason(incident) {
                self.tracks.remove(&(incident.rule.clone(), incident.service.clone()));
                incident.resolve(reason, wall);
                (tracked.saved, changed) = (false, true);
            }
        }
        changed
    }

    /// Resolves all incidents of a rule, for this reason, and resets its timers.
    pub(super) fn end(&mut self, rule: &Slug, because: &str, wall: Millis) {
        self.tracks.retain(|(of, _), _| of != rule);
        for tracked in self.incidents.values_mut() {
            if tracked.incident.rule == *rule && tracked.incident.is_open() {
                tracked.incident.resolve(because, wall);
                tracked.saved = false;
            }
        }
    }

    fn tell(&mut self, rule: &Slug, channels: &[Slug], wall: Millis) -> bool {
        let mut changed = false;
        for tracked in self.incidents.values_mut() {
            let incident = &mut tracked.incident;
            let untold = incident.is_open() && !incident.notified && !incident.is_muted(wall);
            if incident.rule == *rule && untold {
                incident.tell(channels, wall);
                (tracked.saved, changed) = (false, true);
            }
        }
        changed
    }

    /// Drops the oldest messages of a channel that nobody can reach.
    fn bound(&mut self) {
        let waiting: Vec<Slug> =
            self.incidents.values().flat_map(|tracked| tracked.incident.waiting()).cloned().collect();
        for channel in waiting.iter().collect::<HashSet<_>>() {
            let count = waiting.iter().filter(|name| *name == channel).count();
            let mut old: Vec<&mut LiveIncident> = self
                .incidents
                .values_mut()
                .filter(|tracked| tracked.incident.waiting().any(|name| name == channel))
                .collect();
            old.sort_by_key(|tracked| tracked.incident.opened);
            for tracked in old.into_iter().take(count.saturating_sub(WAITING_MAX)) {
                tracked.incident.give_up(channel, "too much waits for this channel");
                tracked.saved = false;
            }
        }
    }

    /// Records that the store has everything, and forgets resolved incidents.
    pub(super) fn saved(&mut self) {
        self.incidents.values_mut().for_each(|tracked| tracked.saved = true);
        self.incidents.retain(|_, tracked| tracked.incident.is_live());
    }
}

/// Opens an incident. Its id is derived from its rule, service and time, so that it is the same wherever it is looked up.
pub(super) fn opened(rule: &AlertRule, reading: &Reading, wall: Millis) -> Incident {
    let service = reading.service.as_ref().map_or("", Slug::as_str);
    let digest = Sha256::digest(format!("{} {service} {}", rule.name, wall.0));
    Incident {
        id: format!("inc_{}", hex(&digest[..16])),
        rule: rule.name.clone(),
        kind: rule.kind(),
        severity: rule.severity,
        service: reading.service.clone(),
        opened: wall,
        updated: wall,
        resolved: None,
        value: reading.value,
        summary: reading.summary.clone(),
        acknowledged: None,
        muted: None,
        notified: false,
        notices: Vec::new(),
    }
}
