//! Works on suspect messages alone.
//!
//! # Why alone?
//! When a process dies, its queue counts a failed delivery for every message that the process had: for the one that killed it and for
//! those that waited beside it. A message that kills every process would take all its neighbours with it into the dead letters. So a
//! consumer that begins takes messages one by one while they were delivered before, and asks for many only when a message comes that
//! is new. A quorum queue delivers what came back first.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use lapin::message::Delivery as ReceivedDelivery;
use lapin::options::BasicGetOptions;
use tokio::sync::watch;
use tokio::time::timeout;

use super::subscription::{Line, Subscription, WorkTerms, Worker};
use crate::error::AmqpError;
use crate::message::delivery_count;

/// How it ended.
pub(super) enum SuspectsEnd {
    /// There is no suspect left. A message that was taken and is new comes with it.
    Done(Option<Box<ReceivedDelivery>>),
    /// The consumer was told to stop, and has.
    Stopped,
}

impl Subscription {
    /// Works on messages one by one until one comes that was not delivered before.
    pub(super) async fn work_alone<W: Worker>(
        &self,
        line: &Line,
        worker: &Arc<W>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<SuspectsEnd, AmqpError> {
        let (stop, stopping) = watch::channel(false);
        loop {
            let get = line.channel.basic_get(self.queue.as_str().into(), BasicGetOptions::default());
            let message = line.open.within("taking a message", get).await?.map(|message| message.delivery);
            let message = match message {
                Some(message) if delivery_count(&message.properties) > 0 => message,
                new => return Ok(SuspectsEnd::Done(new.map(Box::new))),
            };
            let terms = WorkTerms { stop: stopping.clone(), is_alone: true };
            let mut work = pin!(worker.clone().work(message, terms));
            let is_stopping = tokio::select! {
                biased;
                () = &mut shutdown => true,
                () = &mut work => false,
            };
            if is_stopping {
                let _ = stop.send(true);
                let is_late = timeout(self.stop_timeout, work).await.is_err();
                self.log.stopped(usize::from(is_late));
                return Ok(SuspectsEnd::Stopped);
            }
        }
    }
}
