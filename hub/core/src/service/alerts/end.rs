//! The end of a process whose store can't be trusted any more: told while nothing can be written down.

use tokio::task::JoinSet;

use super::super::hub::Hub;
use super::tell::send_once;
use super::{Kept, log, watch};
use crate::domain::alert::{AlertRule, Incident, Kind, Reading, Track, Turn};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::notify::Notifier;
use crate::port::store::Store;
use crate::port::transport::Transport;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// The incident of a store that can't be trusted any more, if a rule is for it and is not muted.
    pub fn end_of_trust(&self, cause: &str) -> Option<Incident> {
        let wall = self.now();
        let at_work =
            |rule: &AlertRule| rule.enabled && rule.kind() == Kind::DataLossRisk && !rule.is_muted(wall);
        let rule = self.alerts.rules().into_iter().find(at_work)?;
        let summary = format!("the hub has ended, because its disk can't be trusted: {cause}");
        let reading = Reading { service: None, bad: true, value: 0.0, summary };
        Some(watch::opened(&rule, &reading, wall))
    }

    /// Tells it to all channels of its rule at once. Who was reached is noted in it.
    pub async fn tell_at_once<N: Notifier>(&self, notifier: &N, incident: &mut Incident) {
        let rule = self.alerts.rule(&incident.rule);
        let names: Vec<Slug> = rule.map(|rule| self.alerts.told_by(&rule)).unwrap_or_default();
        // What the log has to say about it is said by whoever ends the process.
        let names: Vec<Slug> = names.into_iter().filter(|name| log().as_ref() != Some(name)).collect();
        incident.tell(&names, incident.opened);
        let mut sending = JoinSet::new();
        for channel in names.iter().filter_map(|name| self.alerts.channel(name)) {
            let (notifier, name) = (notifier.clone(), channel.name.clone());
            let message = self.message(incident, Turn::Opened, false);
            sending.spawn(async move { (name, send_once(&notifier, channel, message).await) });
        }
        while let Some(ended) = sending.join_next().await {
            if let Ok((name, came)) = ended {
                incident.settle(&name, Turn::Opened, came.map(drop), self.now());
            }
        }
    }

    /// Goes on with an incident that a process before has told and could not write down: these channels know of it, and are
    /// told when it is over.
    pub async fn take_over(&self, id: String, opened: Millis, summary: String, told: &[Slug]) {
        let at_work = |rule: &AlertRule| rule.enabled && rule.kind() == Kind::DataLossRisk;
        let Some(rule) = self.alerts.rules().into_iter().find(at_work) else { return };
        if self.incident(&id).await.is_ok_and(|known| known.is_some()) {
            return;
        }
        let reading = Reading { service: None, bad: true, value: 0.0, summary };
        let mut incident = Incident { id: id.clone(), ..watch::opened(&rule, &reading, opened) };
        incident.tell(told, opened);
        told.iter().for_each(|name| incident.settle(name, Turn::Opened, Ok(()), opened));
        let mut live = self.alerts.live.lock().await;
        live.tracks.insert((rule.name, None), Track::opened());
        live.incidents.insert(id, Kept { incident, saved: false });
    }
}
