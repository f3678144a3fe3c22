//! The channels that publishers use, one call at a time.
//!
//! # Why not one channel for all?
//! A server closes a channel because of one message (an absent exchange, a message that is too large), and everything in flight on
//! it is lost with it. And the client library hands a returned message to whichever confirmation comes next, or to any of those
//! that are confirmed together; who has a channel alone knows which of its messages came back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapin::Channel;
use lapin::options::ConfirmSelectOptions;
use seawall::Fault;

use super::config::CHANNELS_MAX;
use crate::connection::{AmqpConnection, OpenConnection, Purpose};
use crate::error::AmqpError;

/// Idle channels in confirm mode. A handle: clones share the channels.
#[derive(Clone)]
pub(crate) struct Channels {
    connection: AmqpConnection,
    idle: Arc<Mutex<Vec<ConfirmChannel>>>,
}

/// A channel in confirm mode, with its connection.
struct ConfirmChannel {
    open: Arc<OpenConnection>,
    channel: Channel,
}

impl Channels {
    pub(crate) fn new(connection: AmqpConnection) -> Self {
        Channels { connection, idle: Arc::default() }
    }

    /// Takes a channel, and makes one if none is idle.
    pub(crate) async fn take(&self) -> Result<LentChannel<'_>, AmqpError> {
        let open = self.connection.open(Purpose::Publish).await?;
        // A connection that is blocked takes nothing, not even the request for a channel.
        if open.is_blocked() {
            let text = "RabbitMQ is short of memory or disk and takes no messages";
            return Err(AmqpError::new("publishing", Fault::throttled(), text));
        }
        let lend = |channel| LentChannel { home: self, channel: Some(channel) };
        if let Some(channel) = self.idle_channel(&open) {
            return Ok(lend(channel));
        }
        let channel = open.channel().await?;
        let confirm = channel.confirm_select(ConfirmSelectOptions::default());
        open.within("asking for confirmations", confirm).await?;
        Ok(lend(ConfirmChannel { open, channel }))
    }

    /// An idle channel of this connection. Those of earlier connections are dropped.
    fn idle_channel(&self, open: &Arc<OpenConnection>) -> Option<ConfirmChannel> {
        let mut idle = self.lock();
        while let Some(channel) = idle.pop() {
            if Arc::ptr_eq(&channel.open, open) && channel.channel.status().connected() {
                return Some(channel);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ConfirmChannel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel that one call has for itself. It is closed when it is dropped, unless it was given back.
pub(crate) struct LentChannel<'a> {
    home: &'a Channels,
    channel: Option<ConfirmChannel>,
}

impl LentChannel<'_> {
    pub(crate) fn channel(&self) -> &Channel {
        &self.lent().channel
    }

    pub(crate) fn connection(&self) -> &OpenConnection {
        &self.lent().open
    }

    fn lent(&self) -> &ConfirmChannel {
        self.channel.as_ref().expect("it is given back by value")
    }

    /// Gives the channel back for the next call. Nothing may be in flight on it.
    pub(crate) fn give_back(mut self) {
        let Some(channel) = self.channel.take() else { return };
        let mut idle = self.home.lock();
        if idle.len() < CHANNELS_MAX && channel.channel.status().connected() {
            idle.push(channel);
        }
    }
}
