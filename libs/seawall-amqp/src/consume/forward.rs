//! Passes a message on to another queue, and acknowledges it when the server has it there.

use std::future::Future;
use std::time::Duration;

use lapin::BasicProperties;
use lapin::message::Delivery as ReceivedDelivery;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions};
use lapin::types::ShortString;
use seawall::Backoff;
use seawall::backoff::Jitter;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::log::SubscriptionLog;
use crate::connection::{RECONNECT_WAIT, RECONNECT_WAIT_MAX, random_word};
use crate::error::AmqpError;
use crate::message::header_bytes;
use crate::publish::{Channels, HEADER_BYTES_MAX, OutgoingMessage, SendOutcome, send};

/// How long the client may take to hand an acknowledgement to its connection. Nobody answers acknowledgements, so it is done at once
/// unless the connection is stuck, and then the server delivers the message again.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A message on its way out of the hands of a worker.
pub(super) struct Forward<'a> {
    pub(super) delivery: &'a ReceivedDelivery,
    pub(super) event_id: &'a str,
    pub(super) payload: &'a [u8],
    pub(super) log: &'a SubscriptionLog,
    pub(super) stop: watch::Receiver<bool>,
}

impl Forward<'_> {
    /// Publishes the message elsewhere until the server has confirmed it, and then acknowledges it here. A crash in between leaves
    /// it in both places; it is never in none.
    ///
    /// Returns an error for a message that the server does not take there and never will.
    pub(super) async fn pass_on(
        &mut self,
        channels: &Channels,
        exchange: &str,
        routing_key: &str,
        properties: BasicProperties,
    ) -> Result<(), AmqpError> {
        let (exchange, key): (ShortString, ShortString) = (exchange.into(), routing_key.into());
        let outgoing = OutgoingMessage { exchange, routing_key: key, properties, payload: self.payload };
        let backoff = Backoff::exponential(RECONNECT_WAIT).cap(RECONNECT_WAIT_MAX).jitter(Jitter::Equal);
        for failures in 0.. {
            let error = match publish(channels, &outgoing).await {
                Ok(()) => {
                    self.acknowledge().await;
                    return Ok(());
                }
                Err(error) if !error.fault().is_transient() => return Err(error),
                Err(error) => error,
            };
            let wait = backoff.wait(failures, Duration::ZERO, false, random_word());
            self.log.not_forwarded(self.event_id, routing_key, wait, &error);
            if !self.waits(wait).await {
                self.give_back().await;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits while the message is still ours. Returns false if the server has taken it back, or the consumer is stopping.
    pub(super) async fn waits(&mut self, wait: Duration) -> bool {
        tokio::select! {
            () = sleep(wait) => {}
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
        self.delivery.acker.usable() && !*self.stop.borrow()
    }

    pub(super) async fn acknowledge(&self) {
        self.tell(self.delivery.acker.ack(BasicAckOptions::default())).await;
    }

    /// Lets the server deliver the message again, to this consumer or another one.
    pub(super) async fn give_back(&self) {
        self.tell(self.delivery.acker.nack(BasicNackOptions { requeue: true, multiple: false })).await;
    }

    /// Lets the server put the message into the dead letter queue, as it came.
    pub(super) async fn reject(&self) {
        self.tell(self.delivery.acker.reject(BasicRejectOptions { requeue: false })).await;
    }

    /// Waits until the client has told the server. A connection that breaks at this moment may never say so, and the next session
    /// waits for this worker.
    async fn tell(&self, told: impl Future<Output = Result<bool, lapin::Error>>) {
        match timeout(ACKNOWLEDGE_TIMEOUT, told).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => self.log.not_acknowledged(self.event_id, &"the channel is gone"),
            Ok(Err(error)) => self.log.not_acknowledged(self.event_id, &error),
            Err(_) => self.log.not_acknowledged(self.event_id, &"the connection took nothing in time"),
        }
    }
}

async fn publish(channels: &Channels, message: &OutgoingMessage<'_>) -> Result<(), AmqpError> {
    let bytes = header_bytes(&message.properties);
    if bytes > HEADER_BYTES_MAX {
        let text = format!("the headers have {bytes} bytes, and the limit is {HEADER_BYTES_MAX}");
        return Err(AmqpError::new("publishing", seawall::Fault::business(), text));
    }
    let mut result = Err(AmqpError::timed_out("publishing"));
    send(channels.take().await?, &[message], |_, outcome| {
        result = match outcome {
            SendOutcome::Confirmed => Ok(()),
            SendOutcome::Failed(error) | SendOutcome::ChannelRefused(error) => Err(error),
        };
    })
    .await;
    result
}
