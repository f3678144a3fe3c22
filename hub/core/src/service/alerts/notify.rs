//! Telling people: the log at once, every other channel by one message at a time.

use std::collections::HashSet;
use std::time::Duration;

use metrics::counter;
use tokio::task::{JoinError, JoinSet};
use tracing::{error, info, warn};

use super::{LiveIncidents, log};
use crate::domain::alert::{Channel, ConditionKind, Incident, NoticeKind, Severity};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::metric_names;
use crate::port::notify::{Message, Notifier};
use crate::port::store::Store;
use crate::port::transport::Transport;
use crate::service::handles::AlertHandle;

/// The time limit of a message, whatever the channel does.
const SEND_MAX: Duration = Duration::from_secs(30);

/// The result of an attempt to send a message.
pub(super) struct NotificationResult {
    channel: Slug,
    incident: String,
    turn: NoticeKind,
    came: Result<String, String>,
}

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Sets the public URL of the hub.
    pub fn set_public_url(&self, url: &str) {
        let url = url.trim_end_matches('/').to_owned();
        *self.core.alerts.public_url.write() = url;
    }

    /// Returns the public URL of the hub; empty if it is not set.
    #[must_use]
    pub fn public_url(&self) -> String {
        self.core.alerts.public_url.read().clone()
    }

    /// Returns the URL of an incident in the dashboard.
    #[must_use]
    pub fn incident_link(&self, incident: &Incident) -> String {
        let base = self.public_url();
        match (&incident.service, incident.kind) {
            (Some(service), ConditionKind::DeadLetters) => {
                format!("{base}/deadLetters/groups?service={service}")
            }
            (Some(service), _) => format!("{base}/services/{service}"),
            (None, _) => format!("{base}/alerts/{}", incident.id),
        }
    }

    pub(super) fn message(&self, incident: &Incident, turn: NoticeKind, test: bool) -> Message {
        Message {
            id: incident.message_id(turn),
            turn,
            link: self.incident_link(incident),
            incident: incident.clone(),
            test,
            at: self.core.now(),
        }
    }

    /// Hands due messages to the channels that are idle.
    pub(super) async fn send_due<N: Notifier>(
        &self,
        notifier: &N,
        sending: &mut JoinSet<NotificationResult>,
        busy: &mut HashSet<Slug>,
    ) {
        let wall = self.core.now();
        let mut live = self.core.alerts.live.lock().await;
        let waiting: HashSet<Slug> =
            live.incidents.values().flat_map(|tracked| tracked.incident.waiting()).cloned().collect();
        let mut changed = false;
        for name in waiting.into_iter().filter(|name| !busy.contains(name)).collect::<Vec<_>>() {
            if log().is_some_and(|log| log == name) {
                changed |= self.write_log(&mut live, &name, wall);
                continue;
            }
            let Some(channel) = self.core.alerts.channel(&name) else {
                let gone = live.incidents.values_mut();
                gone.for_each(|tracked| {
                    tracked.incident.give_up(&name, "the channel was deleted");
                    tracked.saved = false;
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

    /// Returns the oldest incident that has a message for a channel.
    fn first_due<'l>(
        &self,
        live: &'l LiveIncidents,
        channel: &Slug,
        wall: Millis,
    ) -> Option<(&'l Incident, NoticeKind)> {
        let due = |incident: &'l Incident| {
            let rule = self.core.alerts.rule(&incident.rule);
            let quiet = incident.is_muted(wall) || rule.is_some_and(|rule| rule.is_muted(wall));
            Some((incident, incident.due(channel, quiet, wall)?))
        };
        let all = live.incidents.values().filter_map(|tracked| due(&tracked.incident));
        all.min_by_key(|(incident, _)| incident.opened)
    }

    fn write_log(&self, live: &mut LiveIncidents, log: &Slug, wall: Millis) -> bool {
        let mut changed = false;
        for tracked in live.incidents.values_mut() {
            while let Some(turn) = tracked.incident.due(log, false, wall) {
                line(&tracked.incident, turn, &self.incident_link(&tracked.incident));
                counted(log, "sent");
                tracked.incident.settle(log, turn, Ok(()), wall);
                (tracked.saved, changed) = (false, true);
            }
        }
        changed
    }

    /// Records the result of an attempt.
    pub(super) async fn sent(&self, ended: Result<NotificationResult, JoinError>, busy: &mut HashSet<Slug>) {
        let Ok(NotificationResult { channel, incident, turn, came }) = ended else {
            // A try that panicked is one that nobody knows the channel of: all are free again.
            busy.clear();
            return;
        };
        busy.remove(&channel);
        let wall = self.core.now();
        let came = came.map(drop);
        counted(&channel, if came.is_ok() { "sent" } else { "failed" });
        let mut live = self.core.alerts.live.lock().await;
        let Some(tracked) = live.incidents.get_mut(&incident) else { return };
        if let Err(cause) = &came {
            let (channel, incident) = (channel.as_str(), &*incident);
            warn!(target: "seawall_alerts", channel, incident, turn = turn.word(), cause, "[Alerts][Send] Retry triggered.");
        }
        tracked.incident.settle(&channel, turn, came, wall);
        tracked.saved = false;
        self.save(&mut live).await;
    }
}

pub(super) async fn send<N: Notifier>(notifier: N, channel: Channel, message: Message) -> NotificationResult {
    let notified = tokio::time::timeout(SEND_MAX, notifier.tell(&channel, &message)).await;
    let came = notified.unwrap_or_else(|_| Err(format!("no response within {} s", SEND_MAX.as_secs())));
    NotificationResult { channel: channel.name, incident: message.incident.id, turn: message.turn, came }
}

/// Sends a message without recording the result.
pub(super) async fn send_once<N: Notifier>(
    notifier: &N,
    channel: Channel,
    message: Message,
) -> Result<String, String> {
    send(notifier.clone(), channel, message).await.came
}

fn counted(channel: &Slug, outcome: &'static str) {
    counter!(metric_names::NOTIFICATIONS, "channel" => channel.to_string(), "outcome" => outcome)
        .increment(1);
}

/// Logs an incident. The line has its own target, so that it is not counted among those that lead to alerts.
fn line(incident: &Incident, turn: NoticeKind, link: &str) {
    let Incident { id, rule, severity, service, summary, .. } = incident;
    let (rule, severity, service) = (rule.as_str(), severity.word(), service.as_ref().map(Slug::as_str));
    let because = incident.resolved.as_ref().map(|resolved| &*resolved.because);
    match (turn, incident.severity) {
        (NoticeKind::Opened, Severity::Critical) => {
            error!(target: "seawall_alerts", incident = id, rule, severity, service, cause = summary, link, action = "ManualReview", "[Alerts][Open] Failed!");
        }
        (NoticeKind::Opened, Severity::Warning) => {
            warn!(target: "seawall_alerts", incident = id, rule, severity, service, cause = summary, link, action = "ManualReview", "[Alerts][Open] Failed!");
        }
        (NoticeKind::Resolved, _) => {
            info!(target: "seawall_alerts", incident = id, rule, severity, service, because, link, "[Alerts][Resolve] Success.");
        }
    }
}
