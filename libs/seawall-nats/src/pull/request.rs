//! Requests for messages, for exactly as many as there is room. The next one is sent while the messages of the last one arrive.
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
use tokio::time::{Sleep, sleep, timeout};

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
    open: Arc<OpenConnection>,
    target: PullTarget,
    subject: String,
    inbox: String,
    subscription: Subscriber,
    /// What the server said instead of a message, until it is looked at.
    answer: Option<Message>,
    /// Fires when a sign of life is due, over and over.
    alarm: Pin<Box<Sleep>>,
    /// How often the alarm has fired since the last sign of life.
    alarms: u32,
    room: Arc<Semaphore>,
    /// Room for the messages that were requested and have not arrived.
    reserved: Option<OwnedSemaphorePermit>,
    /// How many messages the server owes us. It serves several requests in turns, so that only the sum is known.
    requested: usize,
    /// The number of the last request, and how many messages it was for. Answers have the number in their subject.
    number: u64,
    batch: usize,
    /// The number of the first request that counts; the server has forgotten those before it.
    first: u64,
    silences: u32,
    had_sign_of_life: bool,
    /// Until when messages come one at a time.
    careful_until: Option<Tick>,
    clock: Clock,
}

/// The time between two looks at whether there was a sign of life. It is a bit longer than [`HEARTBEAT`].
const ALARM: Duration = Duration::from_millis(1_250);

/// The number of looks in a row without one after which the server counts as silent.
const ALARMS_MAX: u32 = 2;

/// What comes of waiting for a message.
enum SignOfLife {
    Message(Message),
    End,
    Missing,
}

/// Missing signs of life before the consumer is opened anew, and not only asked again.
const SILENCES_MAX: u32 = 2;

/// The pause after a request that the server could not take now.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

const PULLING: &str = "pulling messages";

impl PullRequests {
    pub(crate) async fn open(
        open: Arc<OpenConnection>,
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
            answer: None,
            alarm: Box::pin(sleep(ALARM)),
            alarms: 0,
            room,
            reserved: None,
            requested: 0,
            number: 0,
            batch: 0,
            first: 1,
            silences: 0,
            had_sign_of_life: false,
        })
    }

    pub(crate) fn had_sign_of_life(&self) -> bool {
        self.had_sign_of_life
    }

    /// Waits for the next message, and adds it with all others that have arrived.
    pub(crate) async fn next(&mut self, messages: &mut Vec<PulledMessage>) -> Result<(), NatsError> {
        loop {
            if self.requested == 0 {
                self.reserve().await;
                self.request().await?;
            } else if self.has_much_room() {
                self.reserve_free();
                self.request().await?;
            }
            match poll_fn(|cx| self.poll_sign_of_life(cx)).await {
                SignOfLife::Missing => self.silence()?,
                SignOfLife::End => {
                    return Err(NatsError::new(PULLING, Fault::io(), "the subscription ended"));
                }
                SignOfLife::Message(message) => {
                    (self.silences, self.had_sign_of_life) = (0, true);
                    match message.status {
                        None | Some(StatusCode::OK) => {
                            messages.push(self.take(message));
                            self.take_others(messages);
                            return Ok(());
                        }
                        Some(StatusCode::IDLE_HEARTBEAT) => {}
                        Some(status) => self.answer(status, &message).await?,
                    }
                }
            }
        }
    }

    /// Ends the subscription and returns what has arrived without being taken.
    ///
    /// The server forgets the requests as well. A message that is given back while it remembers one is delivered to nobody: it
    /// notices too late that nobody listens (nats-server 2.9), and the message waits as if its process had died.
    pub(crate) async fn close(mut self, limit: Duration) -> Vec<PulledMessage> {
        let is_connected = self.open.client.connection_state() == State::Connected;
        let mut rest = Vec::new();
        let closing = async {
            if self.subscription.drain().await.is_err() {
                return;
            }
            // It ends when the server has answered. What it sent before is with us then.
            while let Some(message) = poll_fn(|cx| self.poll(cx)).await {
                if matches!(message.status, None | Some(StatusCode::OK)) {
                    rest.push(self.take(message));
                }
            }
            // The server looks for requests that nobody waits for before it answers this.
            let _ = redelivered(&self.open, &self.target).await;
        };
        // Without a connection there is nobody to answer, and only what is here already is given back.
        let limit = if is_connected { limit } else { Duration::ZERO };
        let _ = timeout(limit, closing).await;
        rest
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        Pin::new(&mut self.subscription).poll_next(cx)
    }

    /// Waits for a message, or for a sign of life that does not come. One timer does for all messages: a timer for each of them
    /// would cost as much as the message.
    fn poll_sign_of_life(&mut self, cx: &mut Context<'_>) -> Poll<SignOfLife> {
        let arrived = self.answer.take().map_or_else(|| self.poll(cx), |answer| Poll::Ready(Some(answer)));
        if let Poll::Ready(message) = arrived {
            self.alarms = 0;
            return Poll::Ready(message.map_or(SignOfLife::End, SignOfLife::Message));
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            self.alarms += 1;
            self.alarm.as_mut().set(sleep(ALARM));
            if self.alarms >= ALARMS_MAX {
                return Poll::Ready(SignOfLife::Missing);
            }
        }
        Poll::Pending
    }

    fn take_others(&mut self, messages: &mut Vec<PulledMessage>) {
        while self.requested > 0 {
            match self.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(message)) if matches!(message.status, None | Some(StatusCode::OK)) => {
                    messages.push(self.take(message));
                }
                Poll::Ready(answer) => {
                    self.answer = answer;
                    break;
                }
                Poll::Pending => break,
            }
        }
    }

    /// Waits until there is room for a request that is worth it, then takes all that is free.
    async fn reserve(&mut self) {
        if self.is_careful() {
            drop(self.reserved.take());
            // Nothing else is in hand when there is all the room.
            let Ok(mut all) = self.room.clone().acquire_many_owned(self.target.prefetch).await else {
                return;
            };
            self.reserved = all.split(1);
            return;
        }
        if self.reserved.as_ref().is_none_or(|reserved| reserved.num_permits() == 0) {
            self.reserved = self.room.clone().acquire_many_owned(self.target.refill).await.ok();
        }
        self.reserve_free();
    }

    fn reserve_free(&mut self) {
        let free = u32::try_from(self.room.available_permits()).unwrap_or(u32::MAX);
        let Ok(more) = self.room.clone().try_acquire_many_owned(free) else { return };
        match &mut self.reserved {
            Some(reserved) => reserved.merge(more),
            None => self.reserved = Some(more),
        }
    }

    /// Returns true if there is room for another request before the last one is served. Without it the server would have nothing
    /// to do for a whole round trip.
    fn has_much_room(&self) -> bool {
        self.room.available_permits() >= (self.target.prefetch as usize).div_ceil(2) && !self.is_careful()
    }

    fn is_careful(&self) -> bool {
        self.careful_until.is_some_and(|until| self.clock.now() < until)
    }

    async fn request(&mut self) -> Result<(), NatsError> {
        // The client library would queue the request and send it to a server that does not know us.
        if self.open.client.connection_state() != State::Connected {
            return Err(NatsError::new(PULLING, Fault::unreachable(), "the connection is lost"));
        }
        let reserved = self.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let batch = reserved.saturating_sub(self.requested).max(1);
        let body = format!(
            r#"{{"batch":{batch},"expires":{},"idle_heartbeat":{}}}"#,
            REQUEST_EXPIRY.as_nanos(),
            HEARTBEAT.as_nanos()
        );
        self.number += 1;
        let reply = format!("{}.{}", self.inbox, self.number);
        let sent = self.open.client.publish_with_reply(self.subject.clone(), reply, body.into()).await;
        sent.map_err(|error| NatsError::of(PULLING, error))?;
        (self.batch, self.requested) = (batch, self.requested + batch);
        self.alarm.as_mut().set(sleep(ALARM));
        self.alarms = 0;
        Ok(())
    }

    fn take(&mut self, message: Message) -> PulledMessage {
        let permit = self.reserved.as_mut().and_then(|reserved| reserved.split(1));
        self.requested = self.requested.saturating_sub(1);
        PulledMessage { message, permit }
    }

    /// The server said nothing. It may have forgotten the requests: after a restart, or because it has another leader.
    fn silence(&mut self) -> Result<(), NatsError> {
        (self.requested, self.first) = (0, self.number + 1);
        self.silences += 1;
        if self.silences > SILENCES_MAX {
            return Err(NatsError::new(PULLING, Fault::timeout(), "the server shows no sign of life"));
        }
        Ok(())
    }

    /// The server answered a request with a status instead of messages.
    async fn answer(&mut self, status: StatusCode, message: &Message) -> Result<(), NatsError> {
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
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
                if number == self.number {
                    self.requested = self.requested.saturating_sub(self.batch);
                }
            }
            // The time of the request has passed, or there are no messages, or the consumer has another leader.
            _ if number >= self.first => match left(message) {
                Some(left) => self.requested = self.requested.saturating_sub(left),
                None => (self.requested, self.first) = (0, self.number + 1),
            },
            _ => {}
        }
        Ok(())
    }
}

/// How many messages of a request the server does not send any more.
fn left(answer: &Message) -> Option<usize> {
    answer.headers.as_ref()?.get("Nats-Pending-Messages")?.as_str().parse().ok()
}

/// How many messages were delivered more than once and are not acknowledged.
async fn redelivered(open: &OpenConnection, target: &PullTarget) -> Result<usize, NatsError> {
    let stream = open.jetstream.get_stream_no_info(&*target.stream).await;
    let stream = stream.map_err(|error| NatsError::of(PULLING, error))?;
    let info = stream.consumer_info(&*target.consumer).await;
    Ok(info.map_err(|error| NatsError::of(PULLING, error))?.num_redelivered)
}
