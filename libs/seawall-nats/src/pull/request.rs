//! Requests for messages, one at a time, for exactly as many as there is room.
//!
//! The client library has a stream of messages that keeps a buffer of its own. Messages in it are ours for the server and
//! nobody's for us: their time runs out unseen, and a stop does not give them back. So the requests are made here.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Message, StatusCode, Subscriber};
use futures_core::Stream;
use seawall::fault::Ran;
use seawall::{Clock, Fault, Tick};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::{HEARTBEAT, REQUEST_EXPIRY};
use crate::NatsError;
use crate::connection::OpenConnection;

/// The consumer that is pulled from.
#[derive(Clone, Debug)]
pub(crate) struct PullTarget {
    pub(crate) stream: Arc<str>,
    pub(crate) consumer: Arc<str>,
    /// How many of the messages in hand have to be done with before more are requested. Requests for one message each would cost a round trip
    /// each, and late ones would let handlers wait.
    pub(crate) refill: u32,
    prefetch: u32,
    /// For how long messages come one at a time after the consumer was opened, if some of them were delivered more than once.
    careful_for: Duration,
}

impl PullTarget {
    /// Creates the target. As many messages as there are handlers stay in hand when more are requested.
    pub(crate) fn new(stream: Arc<str>, consumer: Arc<str>, prefetch: u32, handlers: u32) -> Self {
        let refill = (prefetch / 2).min(prefetch.saturating_sub(handlers)).max(1);
        PullTarget { stream, consumer, refill, prefetch, careful_for: Duration::ZERO }
    }

    /// Takes messages one at a time at first if some were delivered more than once, for a bit longer than the server waits
    /// before it delivers again what a dead process had in hand.
    ///
    /// JetStream counts a delivery for every message in hand when a process dies. A message that kills every process would take
    /// its neighbours with it into the dead letters. So it comes alone, and the count of the others stays.
    pub(crate) fn careful(mut self, ack_wait: Duration) -> Self {
        self.careful_for = ack_wait * 3 / 2;
        self
    }
}

/// A message with its place among those in hand. The place is free when this is dropped.
pub(crate) struct PulledMessage {
    pub(crate) message: Message,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

pub(crate) struct PullRequests {
    open: OpenConnection,
    target: PullTarget,
    subject: String,
    inbox: String,
    subscription: Subscriber,
    room: Arc<Semaphore>,
    /// Room for the messages that were requested and have not arrived.
    reserved: Option<OwnedSemaphorePermit>,
    /// The number of the request that the server works on. Its answers have the number in their subject.
    number: u64,
    is_requested: bool,
    silences: u32,
    had_sign_of_life: bool,
    /// Until when messages come one at a time.
    careful_until: Option<Tick>,
    clock: Clock,
}

/// Missing signs of life before the consumer is opened anew, and not only asked again.
const SILENCES_MAX: u32 = 2;

/// The pause after a request that the server could not take now.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

const PULLING: &str = "pulling messages";

impl PullRequests {
    pub(crate) async fn open(
        open: OpenConnection,
        target: PullTarget,
        room: Arc<Semaphore>,
    ) -> Result<Self, NatsError> {
        let inbox = open.client.new_inbox();
        let subscription = open
            .client
            .subscribe(format!("{inbox}.*"))
            .await
            .map_err(|error| NatsError::of("subscribing to a consumer", error))?;
        let subject = format!("{}.CONSUMER.MSG.NEXT.{}.{}", open.prefix, target.stream, target.consumer);
        let clock = Clock::system();
        let is_careful = !target.careful_for.is_zero() && redelivered(&open, &target).await? > 0;
        Ok(PullRequests {
            careful_until: is_careful.then(|| clock.now() + target.careful_for),
            clock,
            open,
            target,
            subject,
            inbox,
            subscription,
            room,
            reserved: None,
            number: 0,
            is_requested: false,
            silences: 0,
            had_sign_of_life: false,
        })
    }

    pub(crate) fn had_sign_of_life(&self) -> bool {
        self.had_sign_of_life
    }

    pub(crate) async fn next(&mut self) -> Result<PulledMessage, NatsError> {
        loop {
            if !self.is_requested {
                self.reserve().await;
                self.request().await?;
            }
            match timeout(HEARTBEAT * 5 / 2, poll_fn(|cx| self.poll(cx))).await {
                Err(_) => self.silence()?,
                Ok(None) => {
                    return Err(NatsError::new(PULLING, Fault::io(), "the subscription ended"));
                }
                Ok(Some(message)) => {
                    (self.silences, self.had_sign_of_life) = (0, true);
                    match message.status {
                        None | Some(StatusCode::OK) => return Ok(self.take(message)),
                        Some(StatusCode::IDLE_HEARTBEAT) => {}
                        Some(status) => self.answer(status, &message).await?,
                    }
                }
            }
        }
    }

    /// Ends the subscription and returns what has arrived. The server delivers again what arrives after that.
    pub(crate) fn close(mut self) -> Vec<PulledMessage> {
        let mut rest = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(message)) = self.poll(&mut context) {
            if matches!(message.status, None | Some(StatusCode::OK)) {
                rest.push(self.take(message));
            }
        }
        rest
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        Pin::new(&mut self.subscription).poll_next(cx)
    }

    /// Waits until there is room for a request that is worth it, then takes all that is free.
    async fn reserve(&mut self) {
        if self.careful_until.is_some_and(|until| self.clock.now() < until) {
            drop(self.reserved.take());
            // Nothing else is in hand when there is all the room.
            let Ok(mut all) = self.room.clone().acquire_many_owned(self.target.prefetch).await else {
                return;
            };
            self.reserved = all.split(1);
            return;
        }
        let mut reserved = match self.reserved.take().filter(|permit| permit.num_permits() > 0) {
            Some(reserved) => reserved,
            None => {
                let room = self.room.clone().acquire_many_owned(self.target.refill);
                let Ok(permit) = room.await else { return };
                permit
            }
        };
        let free = u32::try_from(self.room.available_permits()).unwrap_or(u32::MAX);
        if let Ok(more) = self.room.clone().try_acquire_many_owned(free) {
            reserved.merge(more);
        }
        self.reserved = Some(reserved);
    }

    async fn request(&mut self) -> Result<(), NatsError> {
        // The client library would queue the request and send it to a server that does not know us.
        if self.open.client.connection_state() != State::Connected {
            return Err(NatsError::new(PULLING, Fault::unreachable(), "the connection is lost"));
        }
        let batch = self.reserved.as_ref().map_or(1, OwnedSemaphorePermit::num_permits);
        let body = format!(
            r#"{{"batch":{batch},"expires":{},"idle_heartbeat":{}}}"#,
            REQUEST_EXPIRY.as_nanos(),
            HEARTBEAT.as_nanos()
        );
        self.number += 1;
        let reply = format!("{}.{}", self.inbox, self.number);
        let sent = self.open.client.publish_with_reply(self.subject.clone(), reply, body.into()).await;
        sent.map_err(|error| NatsError::of(PULLING, error))?;
        self.is_requested = true;
        Ok(())
    }

    fn take(&mut self, message: Message) -> PulledMessage {
        let permit = self.reserved.as_mut().and_then(|reserved| reserved.split(1));
        if self.reserved.as_ref().is_none_or(|reserved| reserved.num_permits() == 0) {
            self.is_requested = false;
        }
        PulledMessage { message, permit }
    }

    /// The server said nothing. It may have forgotten the request: after a restart, or because it has another leader.
    fn silence(&mut self) -> Result<(), NatsError> {
        self.is_requested = false;
        self.silences += 1;
        if self.silences > SILENCES_MAX {
            return Err(NatsError::new(PULLING, Fault::timeout(), "the server shows no sign of life"));
        }
        Ok(())
    }

    /// The server answered a request with a status instead of messages.
    async fn answer(&mut self, status: StatusCode, message: &Message) -> Result<(), NatsError> {
        let is_current = message.subject.ends_with(&format!(".{}", self.number));
        let text = message.description.as_deref().unwrap_or_default();
        match status {
            StatusCode::NO_RESPONDERS => {
                return Err(NatsError::new(PULLING, Fault::unreachable(), "the consumer does not answer"));
            }
            _ if text.eq_ignore_ascii_case("consumer deleted") => {
                let gone = Fault::business().ran(Ran::No);
                let text = "the consumer was deleted; declaring it anew would begin with the oldest message";
                return Err(NatsError::new(PULLING, gone, text));
            }
            _ if text.starts_with("Exceeded Max") || text.starts_with("Bad Request") => {
                sleep(BUSY_PAUSE).await;
            }
            // The time of the request has passed, or there are no messages, or the consumer has another leader.
            _ => {}
        }
        if is_current {
            self.is_requested = false;
        }
        Ok(())
    }
}

/// How many messages were delivered more than once and are not acknowledged.
async fn redelivered(open: &OpenConnection, target: &PullTarget) -> Result<usize, NatsError> {
    let stream = open.jetstream.get_stream_no_info(&*target.stream).await;
    let stream = stream.map_err(|error| NatsError::of(PULLING, error))?;
    let info = stream.consumer_info(&*target.consumer).await;
    Ok(info.map_err(|error| NatsError::of(PULLING, error))?.num_redelivered)
}
