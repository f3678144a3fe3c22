//! Channels of alerts: changing them, and trying them.

use std::sync::PoisonError;
use std::time::Duration;

use tracing::info;

use super::super::hub::{Hub, Refused, check_version};
use super::{LOG, tell};
use crate::domain::alert::{Channel, Incident, Kind, Severity, Turn};
use crate::domain::slug::Slug;
use crate::port::notify::Notifier;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;

/// So many channels there are at most.
const CHANNELS_MAX: usize = 32;

/// What came of a try of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tested {
    /// The name of the message.
    pub message: String,
    /// What the other side said, or why it did not arrive.
    pub came: Result<String, String>,
    /// How long it took.
    pub took: Duration,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// All channels beside the log, in the order of their names.
    pub fn channels(&self) -> Vec<Channel> {
        self.alerts.channels()
    }

    /// A channel.
    pub fn channel(&self, name: &Slug) -> Option<Channel> {
        self.alerts.channel(name)
    }

    /// Keeps a channel, new or changed. What waits for it is tried at once.
    pub async fn put_channel(&self, mut channel: Channel, expected: Option<u64>) -> Result<Channel, Refused> {
        if channel.name.as_str() == LOG {
            let reason = "the log is always there, and has no settings";
            return Err(Refused::Wrong(vec![("name".into(), reason.into())]));
        }
        let _one_after_the_other = self.changing.lock().await;
        let before = self.alerts.channel(&channel.name);
        if before.is_none() && self.alerts.channels().len() >= CHANNELS_MAX {
            return Err(Refused::Conflict(format!("there are {CHANNELS_MAX} channels, and no more can be")));
        }
        let found = before.map_or(0, |channel| channel.version);
        check_version(expected, found)?;
        (channel.version, channel.changed) = (found + 1, self.now());
        self.commit(Change::PutChannel(channel.clone())).await?;
        let all = &self.alerts.channels;
        all.write().unwrap_or_else(PoisonError::into_inner).insert(channel.name.clone(), channel.clone());
        let mut live = self.alerts.live.lock().await;
        let now = self.now();
        live.incidents.values_mut().for_each(|kept| kept.incident.try_again(&channel.name, now));
        drop(live);
        self.alerts.bell.notify_one();
        let Channel { name, version, .. } = &channel;
        info!(target: "seawall", channel = name.as_str(), version, "[Alerts][PutChannel] Success.");
        Ok(channel)
    }

    /// Deletes a channel. Not while a rule names it.
    pub async fn delete_channel(&self, name: &Slug, expected: Option<u64>) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let channel = self.alerts.channel(name).ok_or(Refused::Missing)?;
        check_version(expected, channel.version)?;
        let names_it = |rule: &crate::domain::alert::AlertRule| {
            rule.channels.as_ref().is_some_and(|channels| channels.contains(name))
        };
        if let Some(rule) = self.alerts.rules().into_iter().find(names_it) {
            return Err(Refused::Conflict(format!(
                "the alert rule `{}` names it; change that first",
                rule.name
            )));
        }
        self.commit(Change::DeleteChannel(name.clone(), channel.version)).await?;
        self.alerts.channels.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.alerts.bell.notify_one();
        info!(target: "seawall", channel = name.as_str(), "[Alerts][DeleteChannel] Success.");
        Ok(())
    }

    /// Sends a sample to a channel, and says what came of it. Nothing has happened, and the message says so.
    pub async fn test_channel<N: Notifier>(&self, name: &Slug, notifier: &N) -> Result<Tested, Refused> {
        let channel = self.alerts.channel(name).ok_or(Refused::Missing)?;
        let message = self.message(&self.sample(), Turn::Opened, true);
        let (id, began) = (message.id.clone(), self.clock.precise());
        let came = tell::send_once(notifier, channel, message).await;
        Ok(Tested { message: id, came, took: self.clock.precise().since(began) })
    }

    fn sample(&self) -> Incident {
        let now = self.now();
        let name = |name: &str| Slug::new(name).unwrap_or_else(|_| unreachable!("it is a name"));
        Incident {
            id: format!("test_{:x}", now.0),
            rule: name(Kind::CircuitOpen.built_in()),
            kind: Kind::CircuitOpen,
            severity: Severity::Warning,
            service: Some(name("example")),
            opened: now,
            updated: now,
            resolved: None,
            value: 1.0,
            summary: "this is a test: nothing is wrong, and somebody wants to see whether messages arrive"
                .into(),
            acknowledged: None,
            muted: None,
            told: true,
            notices: Vec::new(),
        }
    }
}
