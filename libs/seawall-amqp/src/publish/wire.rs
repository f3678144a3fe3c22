//! Sends messages on a channel, all at once, and waits for their confirmations.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{BasicProperties, Confirmation, PublisherConfirm};
use seawall::Fault;
use seawall::fault::Ran;
use tokio::time::timeout;

use super::channels::LentChannel;
use crate::error::AmqpError;
use crate::fault::is_refusal;

/// A message as it is sent.
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    pub(crate) properties: BasicProperties,
    pub(crate) payload: &'a [u8],
}

impl OutgoingMessage<'_> {
    /// What identifies the message among those of one call.
    fn key(&self) -> MessageKey {
        (self.properties.message_id().clone(), self.exchange.clone(), self.routing_key.clone())
    }
}

type MessageKey = (Option<ShortString>, ShortString, ShortString);

/// What became of a message that was sent.
pub(crate) enum SendOutcome {
    Confirmed,
    Failed(AmqpError),
    /// The server closed the channel, because of this message or another one on it.
    ChannelRefused(AmqpError),
}

const PUBLISHING: &str = "publishing";

type Sending<'a> = Pin<Box<dyn Future<Output = Result<PublisherConfirm, lapin::Error>> + Send + 'a>>;

/// Sends the messages and reports what became of each, by its index. Gives the channel back if nothing is in flight on it.
///
/// A future that is dropped closes the channel, so that a late confirmation meets nobody.
pub(crate) async fn send(
    lent: LentChannel<'_>,
    messages: &[&OutgoingMessage<'_>],
    mut report: impl FnMut(usize, SendOutcome),
) {
    let channel = lent.channel();
    let mut sending: Vec<Sending<'_>> = messages
        .iter()
        .map(|message| -> Sending<'_> {
            let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
            let properties = message.properties.clone();
            let (exchange, key) = (message.exchange.clone(), message.routing_key.clone());
            Box::pin(channel.basic_publish(exchange, key, options, message.payload, properties))
        })
        .collect();
    // The first poll puts a message into the line to the server; all go before any is waited for.
    let mut early: Vec<Option<Result<PublisherConfirm, lapin::Error>>> = sending
        .iter_mut()
        .map(|future| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        })
        .collect();
    let (mut returned, mut acknowledged) = (HashSet::new(), Vec::new());
    let mut is_clean = true;
    for (index, future) in sending.into_iter().enumerate() {
        let early = early[index].take();
        let confirmation = async {
            let confirm = match early {
                Some(result) => result?,
                None => future.await?,
            };
            confirm.await
        };
        let limit = lent.connection().response_timeout();
        match timeout(limit, confirmation).await {
            Ok(Ok(Confirmation::Ack(message))) => {
                lent.connection().answered();
                returned.extend(message.map(|message| key_of_returned(&message)));
                acknowledged.push(index);
            }
            Ok(Ok(Confirmation::Nack(message))) => {
                returned.extend(message.map(|message| key_of_returned(&message)));
                report(index, SendOutcome::Failed(refused_by_queue()));
            }
            Ok(Ok(Confirmation::NotRequested)) => {
                is_clean = false;
                let text = "the channel is not in confirm mode";
                report(index, SendOutcome::Failed(AmqpError::new(PUBLISHING, Fault::system(), text)));
            }
            Ok(Err(error)) => {
                is_clean = false;
                let outcome =
                    if is_refusal(&error) { SendOutcome::ChannelRefused } else { SendOutcome::Failed };
                report(index, outcome(AmqpError::of(PUBLISHING, error)));
            }
            Err(_) => {
                // Whoever was not answered within the limit is not waited for by the others again.
                lent.connection().unanswered();
                report_confirmed(messages, &acknowledged, &returned, &mut report);
                let error =
                    if lent.connection().is_blocked() { blocked() } else { AmqpError::timed_out(PUBLISHING) };
                return (index..messages.len())
                    .for_each(|index| report(index, SendOutcome::Failed(error.clone())));
            }
        }
    }
    report_confirmed(messages, &acknowledged, &returned, &mut report);
    if is_clean {
        lent.give_back();
    }
}

/// Reports what was acknowledged. The server acknowledges also what it returned, because it has dealt with it; by then all
/// messages that came back are known, because the server returns a message before it acknowledges it.
fn report_confirmed(
    messages: &[&OutgoingMessage<'_>],
    acknowledged: &[usize],
    returned: &HashSet<MessageKey>,
    report: &mut impl FnMut(usize, SendOutcome),
) {
    for &index in acknowledged {
        let message = messages[index];
        if returned.contains(&message.key()) {
            report(index, SendOutcome::Failed(unroutable(message)));
        } else {
            report(index, SendOutcome::Confirmed);
        }
    }
}

fn key_of_returned(message: &BasicReturnMessage) -> MessageKey {
    (message.properties.message_id().clone(), message.exchange.clone(), message.routing_key.clone())
}

fn unroutable(message: &OutgoingMessage<'_>) -> AmqpError {
    let (exchange, key) = (&message.exchange, &message.routing_key);
    let text = match exchange.as_str() {
        "" => format!("there is no queue `{key}`"),
        exchange => format!("no queue is bound to the exchange `{exchange}` with the routing key `{key}`"),
    };
    AmqpError::new(PUBLISHING, Fault::business().ran(Ran::No), text)
}

fn refused_by_queue() -> AmqpError {
    AmqpError::new(
        PUBLISHING,
        Fault::throttled(),
        "the queue is full, or it has lost its leader, and refused the message",
    )
}

fn blocked() -> AmqpError {
    AmqpError::new(
        PUBLISHING,
        Fault::throttled().ran(Ran::Unknown),
        "RabbitMQ is short of memory or disk and takes no messages",
    )
}
