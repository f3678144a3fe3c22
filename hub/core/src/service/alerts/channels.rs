//! Channels of alerts: changing them, and trying them.

use std::time::Duration;

use tracing::info;

use super::{LOG, notify};
use crate::domain::alert::{Channel, ConditionKind, Incident, NoticeKind, Severity};
use crate::domain::slug::Slug;
use crate::port::notify::Notifier;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;
use crate::service::context::Context;
use crate::service::handles::AlertHandle;
use crate::service::shared::{ChangeError, check_version};

/// The maximum number of channels.
const CHANNELS_MAX: usize = 32;

/// The result of a test message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelTestResult {
    /// The id of the message.
    pub message: String,
    /// The answer of the channel, or the error.
    pub came: Result<String, String>,
    /// The duration of the test.
    pub took: Duration,
}

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Lists all channels beside the log, in the order of their names.
    #[must_use]
    pub fn channels(&self) -> Vec<Channel> {
        self.core.alerts.channels()
    }

    /// Returns the channel with this name.
    #[must_use]
    pub fn channel(&self, name: &Slug) -> Option<Channel> {
        self.core.alerts.channel(name)
    }

    /// Creates or changes a channel. Its pending messages are sent at once.
    pub async fn put_channel(
        &self,
        cx: &Context,
        mut channel: Channel,
        expected: Option<u64>,
    ) -> Result<Channel, ChangeError> {
        if channel.name.as_str() == LOG {
            let reason = "the log is always there, and has no settings";
            return Err(ChangeError::Wrong(vec![("name".into(), reason.into())]));
        }
        let _one_after_the_other = self.core.changing.lock().await;
        let before = self.core.alerts.channel(&channel.name);
        if before.is_none() && self.core.alerts.channels().len() >= CHANNELS_MAX {
            return Err(ChangeError::Conflict(format!(
                "there are {CHANNELS_MAX} channels, and no more can be"
            )));
        }
        let found = before.map_or(0, |channel| channel.version);
        check_version(expected, found)?;
        (channel.version, channel.changed) = (found + 1, cx.now);
        self.core.commit(cx, Change::PutChannel(channel.clone())).await?;
        let all = &self.core.alerts.channels;
        all.write().insert(channel.name.clone(), channel.clone());
        let mut live = self.core.alerts.live.lock().await;
        let now = cx.now;
        live.incidents.values_mut().for_each(|tracked| tracked.incident.try_again(&channel.name, now));
        drop(live);
        self.core.alerts.wake.notify_one();
        let Channel { name, version, .. } = &channel;
        info!(target: "seawall", channel = name.as_str(), version, "[Alerts][PutChannel] Success.");
        Ok(channel)
    }

    /// Deletes a channel that no rule names.
    pub async fn delete_channel(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
    ) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let channel = self.core.alerts.channel(name).ok_or(ChangeError::Missing)?;
        check_version(expected, channel.version)?;
        let names_it = |rule: &crate::domain::alert::AlertRule| {
            rule.channels.as_ref().is_some_and(|channels| channels.contains(name))
        };
        if let Some(rule) = self.core.alerts.rules().into_iter().find(names_it) {
            return Err(ChangeError::Conflict(format!(
                "the alert rule `{}` names it; change that first",
                rule.name
            )));
        }
        self.core.commit(cx, Change::DeleteChannel(name.clone(), channel.version)).await?;
        self.core.alerts.channels.write().remove(name);
        self.core.alerts.wake.notify_one();
        info!(target: "seawall", channel = name.as_str(), "[Alerts][DeleteChannel] Success.");
        Ok(())
    }

    /// Sends a test message to a channel and returns the result. The message says that it is a test.
    pub async fn test_channel<N: Notifier>(
        &self,
        name: &Slug,
        notifier: &N,
    ) -> Result<ChannelTestResult, ChangeError> {
        let channel = self.core.alerts.channel(name).ok_or(ChangeError::Missing)?;
        let message = self.message(&self.sample(), NoticeKind::Opened, true);
        let (id, began) = (message.id.clone(), self.core.clock.precise());
        let came = notify::send_once(notifier, channel, message).await;
        Ok(ChannelTestResult { message: id, came, took: self.core.clock.precise().since(began) })
    }

    fn sample(&self) -> Incident {
        let now = self.core.now();
        let name = |name: &str| Slug::new(name).unwrap_or_else(|_| unreachable!("it is a name"));
        Incident {
            id: format!("test_{:x}", now.0),
            rule: name(ConditionKind::CircuitOpen.built_in()),
            kind: ConditionKind::CircuitOpen,
            severity: Severity::Warning,
            service: Some(name("example")),
            opened: now,
            updated: now,
            resolved: None,
            value: 1.0,
            summary: "this is a test message: there is no incident".into(),
            acknowledged: None,
            muted: None,
            notified: true,
            notices: Vec::new(),
        }
    }
}
