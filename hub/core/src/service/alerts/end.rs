//! The end of a process whose store can't be trusted any more: told while nothing can be written down.

use tokio::task::JoinSet;

use super::notify::send_once;
use super::{LiveIncident, log, watch};
use crate::domain::alert::{AlertRule, ConditionKind, ConditionTimer, Incident, NoticeKind, Reading};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::notify::Notifier;
use crate::port::store::Store;
use crate::port::transport::Transport;
use crate::service::handles::AlertHandle;

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Returns the incident of a broken store, if a rule covers it and is not muted.
    #[must_use]
    pub fn end_of_trust(&self, cause: &str) -> Option<Incident> {
        let wall = self.core.now();
        let at_work = |rule: &AlertRule| {
            rule.enabled && rule.kind() == ConditionKind::DataLossRisk && !rule.is_muted(wall)
        };
        let rule = self.core.alerts.rules().into_iter().find(at_work)?;
        let summary = format!("the hub has ended, because its disk can't be trusted: {cause}");
        let reading = Reading { service: None, bad: true, value: 0.0, summary };
        Some(watch::opened(&rule, &reading, wall))
    }

    /// Notifies all channels of its rule at once, and records in it who was reached.
    pub async fn tell_at_once<N: Notifier>(&self, notifier: &N, incident: &mut Incident) {
        let rule = self.core.alerts.rule(&incident.rule);
        let names: Vec<Slug> = rule.map(|rule| self.core.alerts.told_by(&rule)).unwrap_or_default();
        // What the log has to say about it is said by whoever ends the process.
        let names: Vec<Slug> = names.into_iter().filter(|name| log().as_ref() != Some(name)).collect();
        incident.tell(&names, incident.opened);
        let mut sending = JoinSet::new();
        for channel in names.iter().filter_map(|name| self.core.alerts.channel(name)) {
            let (notifier, name) = (notifier.clone(), channel.name.clone());
            let message = self.message(incident, NoticeKind::Opened, false);
            sending.spawn(async move { (name, send_once(&notifier, channel, message).await) });
        }
        while let Some(ended) = sending.join_next().await {
            if let Ok((name, came)) = ended {
                incident.settle(&name, NoticeKind::Opened, came.map(drop), self.core.now());
            }
        }
    }

    /// Continues an incident that a process before reported and could not store: these channels know of it, and are notified when
    /// it is resolved.
    pub async fn take_over(&self, id: String, opened: Millis, summary: String, notified: &[Slug]) {
        let at_work = |rule: &AlertRule| rule.enabled && rule.kind() == ConditionKind::DataLossRisk;
        let Some(rule) = self.core.alerts.rules().into_iter().find(at_work) else { return };
        if self.incident(&id).await.is_ok_and(|known| known.is_some()) {
            return;
        }
        let reading = Reading { service: None, bad: true, value: 0.0, summary };
        let mut incident = Incident { id: id.clone(), ..watch::opened(&rule, &reading, opened) };
        incident.tell(notified, opened);
        notified.iter().for_each(|name| incident.settle(name, NoticeKind::Opened, Ok(()), opened));
        let mut live = self.core.alerts.live.lock().await;
        live.tracks.insert((rule.name, None), ConditionTimer::opened());
        live.incidents.insert(id, LiveIncident { incident, saved: false });
    }
}
