//! A peer that does what a script says.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::{Attempt, Fault, secs};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::transport::{DeliveryHeaders, FullResponse, PeerResponse, SendError, Transport};
use seawall_hub_core::render::RenderedRequest;

/// How the peer takes a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// With this status, after so long.
    Says(u16, Duration),
    Refuses,
    Hangs,
    /// The hub itself panics while it sends.
    Panics,
}

pub(crate) const WELL: Mood = Mood::Says(200, Duration::ZERO);

pub(crate) const fn says(status: u16) -> Mood {
    Mood::Says(status, Duration::ZERO)
}

/// A request that reached the peer.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) delivery: DeliveryId,
    pub(crate) event: String,
    pub(crate) request: RenderedRequest,
    pub(crate) number: u32,
    pub(crate) replay_of: Option<DeliveryId>,
    /// Nothing, if there was no answer.
    pub(crate) status: Option<u16>,
    /// How many were under way, this one too.
    pub(crate) at_once: usize,
    /// How many it had taken well before.
    pub(crate) done: usize,
}

/// A peer. A handle: clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Peer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    mood: Mutex<Option<Mood>>,
    /// What the next requests about an event meet, before the mood.
    script: Mutex<HashMap<String, VecDeque<Mood>>>,
    got: Mutex<Vec<Got>>,
    under_way: AtomicUsize,
    done: AtomicUsize,
}

impl Peer {
    pub(crate) fn feel(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = Some(mood);
    }

    pub(crate) fn script(&self, event: &str, moods: impl IntoIterator<Item = Mood>) {
        self.0.script.lock().unwrap().entry(event.into()).or_default().extend(moods);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.0.got.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.0.got.lock().unwrap().clear();
    }

    /// The events that it took well, in the order in which they came.
    pub(crate) fn took(&self) -> Vec<String> {
        self.got().into_iter().filter(|got| got.status == Some(200)).map(|got| got.event).collect()
    }

    fn mood(&self, event: &str) -> Mood {
        let scripted = self.0.script.lock().unwrap().get_mut(event).and_then(VecDeque::pop_front);
        scripted.or(*self.0.mood.lock().unwrap()).unwrap_or(WELL)
    }
}

/// Counts one less when a request ends, in whatever way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Transport for Peer {
    async fn call(
        &self,
        _: &Service,
        _: &RenderedRequest,
        _: Option<&str>,
        _: Attempt,
    ) -> Result<FullResponse, SendError> {
        unreachable!("nobody calls here")
    }

    async fn send(
        &self,
        _: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
        _: Attempt,
    ) -> Result<PeerResponse, SendError> {
        let letter = letter.unwrap();
        let mood = self.mood(letter.event);
        let at_once = self.0.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let _under_way = UnderWay(&self.0.under_way);
        let done = self.0.done.load(Ordering::SeqCst);
        self.0.got.lock().unwrap().push(Got {
            done,
            delivery: letter.delivery,
            event: letter.event.into(),
            request: request.clone(),
            number: letter.number,
            replay_of: letter.replay_of,
            status: if let Mood::Says(status, _) = mood { Some(status) } else { None },
            at_once,
        });
        let (status, time) = match mood {
            Mood::Says(status, time) => (status, time),
            Mood::Hangs => (200, secs(3_600)),
            Mood::Panics => std::panic::resume_unwind(Box::new("a bug")),
            Mood::Refuses => {
                let fault = Fault::of_io(std::io::ErrorKind::ConnectionRefused);
                let error = "connection refused".into();
                return Err(SendError {
                    fault,
                    error,
                    impossible: false,
                    too_large: false,
                    no_memory: false,
                    sent: None,
                });
            }
        };
        tokio::time::sleep(time).await;
        self.0.done.fetch_add(usize::from(status == 200), Ordering::SeqCst);
        let fault = Fault::of_http(status);
        Ok(PeerResponse { code: Some(status), fault, attributes: vec![], body: b"{}".to_vec(), sent: None })
    }
}
