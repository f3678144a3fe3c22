//! Telling people: the log at once, every other channel by one message at a time.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use metrics::counter;
use tokio::task::{JoinError, JoinSet};
use tracing::{error, info, warn};

use super::super::hub::Hub;
use super::super::numbers;
use super::{Live, log};
use crate::domain::alert::{Channel, Incident, Kind, Severity, Turn};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::notify::{Message, Notifier};
use crate::port::store::Store;
use crate::port::transport::Transport;

/// A message has so long to arrive, whatever the channel does.
const SEND_MAX: Duration = Duration::from_secs(30);

/// What came of a try.
pub(super) struct Ended {
    channel: Slug,
    incident: String,
    turn: Turn,
    came: Result<String, String>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// People find the hub there.
    pub fn set_public_url(&self, url: &str) {
        let url = url.trim_end_matches('/').to_owned();
        *self.alerts.public_url.write().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// Where people find the hub; empty if nobody has said.
    pub fn public_url(&self) -> String {
        self.alerts.public_url.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where people see more of an incident.
    pub fn incident_link(&self, incident: &Incident) -> String {
        let base = self.public_url();
        match (&incident.service, incident.kind) {
            (Some(service), Kind::DeadLetters) => format!("{base}/deadLetters/groups?service={service}"),
            (Some(service), _) => format!("{base}/services/{service}"),
            (None, _) => format!("{base}/alerts/{}", incident.id),
        }
    }

    pub(super) fn message(&self, incident: &Incident, turn: Turn, test: bool) -> Message {
        Message {
            id: incident.message_id(turn),
            turn,
            link: self.incident_link(incident),
            incident: incident.clone(),
            test,
            at: self.now(),
        }
    }

    /// Hands what is due to the channels that have nothing under way.
    pub(super) async fn send_due<N: Notifier>(
        &self,
        notifier: &N,
        sending: &mut JoinSet<Ended>,
        busy: &mut HashSet<Slug>,
    ) {
        let wall = self.now();
        let mut live = self.alerts.live.lock().await;
        let waiting: HashSet<Slug> =
            live.incidents.values().flat_map(|kept| kept.incident.waiting()).cloned().collect();
        let mut changed = false;
        for name in waiting.into_iter().filter(|name| !busy.contains(name)).collect::<Vec<_>>() {
            if log().is_some_and(|log| log == name) {
                changed |= self.write_log(&mut live, &name, wall);
                continue;
            }
            let Some(channel) = self.alerts.channel(&name) else {
                let gone = live.incidents.values_mut();
                gone.for_each(|kept| {
                    kept.incident.give_up(&name, "the channel was deleted");
                    kept.saved = false;
                });
                changed = true;
                continue;
            };
            if let Some((incident, turn)) = self.first_due(&live, &name, wall) {
                busy.insert(name);
                let message = self.message(incident, turn, false);
                sending.spawn(send(notifier.clone(), channel, message));
            }
        }
        if changed {
            self.save(&mut live).await;
        }
    }

    /// The oldest incident that has something to tell there.
    fn first_due<'l>(&self, live: &'l Live, channel: &Slug, wall: Millis) -> Option<(&'l Incident, Turn)> {
        let due = |incident: &'l Incident| {
            let rule = self.alerts.rule(&incident.rule);
            let quiet = incident.is_muted(wall) || rule.is_some_and(|rule| rule.is_muted(wall));
            Some((incident, incident.due(channel, quiet, wall)?))
        };
        let all = live.incidents.values().filter_map(|kept| due(&kept.incident));
        all.min_by_key(|(incident, _)| incident.opened)
    }

    fn write_log(&self, live: &mut Live, log: &Slug, wall: Millis) -> bool {
        let mut changed = false;
        for kept in live.incidents.values_mut() {
            while let Some(turn) = kept.incident.due(log, false, wall) {
                line(&kept.incident, turn, &self.incident_link(&kept.incident));
                counted(log, "sent");
                kept.incident.settle(log, turn, Ok(()), wall);
                (kept.saved, changed) = (false, true);
            }
        }
        changed
    }

    /// A try has ended.
    pub(super) async fn sent(&self, ended: Result<Ended, JoinError>, busy: &mut HashSet<Slug>) {
        let Ok(Ended { channel, incident, turn, came }) = ended else {
            // A try that panicked is one that nobody knows the channel of: all are free again.
            busy.clear();
            return;
        };
        busy.remove(&channel);
        let wall = self.now();
        let came = came.map(drop);
        counted(&channel, if came.is_ok() { "sent" } else { "failed" });
        let mut live = self.alerts.live.lock().await;
        let Some(kept) = live.incidents.get_mut(&incident) else { return };
        if let Err(cause) = &came {
            let (channel, incident) = (channel.as_str(), &*incident);
            warn!(target: "seawall_alerts", channel, incident, turn = turn.word(), cause, "[Alerts][Send] Retry triggered.");
        }
        kept.incident.settle(&channel, turn, came, wall);
        kept.saved = false;
        self.save(&mut live).await;
    }
}

pub(super) async fn send<N: Notifier>(notifier: N, channel: Channel, message: Message) -> Ended {
    let told = tokio::time::timeout(SEND_MAX, notifier.tell(&channel, &message)).await;
    let came = told.unwrap_or_else(|_| Err(format!("no answer within {} s", SEND_MAX.as_secs())));
    Ended { channel: channel.name, incident: message.incident.id, turn: message.turn, came }
}

/// What came of a message, without remembering it.
pub(super) async fn send_once<N: Notifier>(
    notifier: &N,
    channel: Channel,
    message: Message,
) -> Result<String, String> {
    send(notifier.clone(), channel, message).await.came
}

fn counted(channel: &Slug, outcome: &'static str) {
    counter!(numbers::NOTIFICATIONS, "channel" => channel.to_string(), "outcome" => outcome).increment(1);
}

/// The line has a target of its own, so that it is not counted among those that lead to alerts.
fn line(incident: &Incident, turn: Turn, link: &str) {
    let Incident { id, rule, severity, service, summary, .. } = incident;
    let (rule, severity, service) = (rule.as_str(), severity.word(), service.as_ref().map(Slug::as_str));
    let because = incident.resolved.as_ref().map(|resolved| &*resolved.because);
    match (turn, incident.severity) {
        (Turn::Opened, Severity::Critical) => {
            error!(target: "seawall_alerts", incident = id, rule, severity, service, cause = summary, link, action = "ManualReview", "[Alerts][Open] Failed!");
        }
        (Turn::Opened, Severity::Warning) => {
            warn!(target: "seawall_alerts", incident = id, rule, severity, service, cause = summary, link, action = "ManualReview", "[Alerts][Open] Failed!");
        }
        (Turn::Resolved, _) => {
            info!(target: "seawall_alerts", incident = id, rule, severity, service, because, link, "[Alerts][Resolve] Success.");
        }
    }
}
