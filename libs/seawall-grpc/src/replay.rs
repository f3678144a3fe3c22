//! The request of a call, kept so that several attempts can send it.
//!
//! Every attempt reads the same pieces from its own position; the first one that needs another piece takes it from the caller's
//! stream. When the pieces outgrow the limit the call is committed to the attempt that has sent the most, which is the one that
//! asked for another piece, and from then on pieces are passed on without being kept.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::fault::{CallFailure, of_code};
use crate::message::MessageSizes;

/// How much may be kept for one call, and for all calls of a channel.
#[derive(Debug)]
pub(crate) struct BufferLimits {
    pub(crate) call_bytes_max: usize,
    pub(crate) channel_bytes_max: usize,
    pub(crate) channel_bytes: AtomicUsize,
}

/// The request of one call. Attempts hold clones.
#[derive(Clone, Debug)]
pub(crate) struct Replay(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Arc<BufferLimits>,
    state: Mutex<State>,
    /// Who waits for the next piece, or for the call to be committed. Apart from the state: a stream may wake while it is polled.
    waiting: Mutex<Vec<Waker>>,
}

#[derive(Debug)]
struct State {
    source: Option<Body>,
    sizes: Option<MessageSizes>,
    pieces: VecDeque<Piece>,
    /// The position of the first piece that is still kept.
    first: u64,
    bytes: usize,
    winner: Option<u32>,
    /// The attempts that nobody has given up. A connection may go on reading the request of one that is over, which must not
    /// take the caller's stream any further.
    live: Vec<u32>,
    /// Why there is no more to send, if the stream of the caller ended with an error.
    broken: Option<(Code, String)>,
}

#[derive(Clone, Debug)]
enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Replay {
    pub(crate) fn new(source: Body, message_bytes_max: Option<u64>, limits: Arc<BufferLimits>) -> Self {
        let state = State {
            source: Some(source).filter(|source| !source.is_end_stream()),
            sizes: message_bytes_max.map(MessageSizes::new),
            pieces: VecDeque::new(),
            first: 0,
            bytes: 0,
            winner: None,
            live: Vec::new(),
            broken: None,
        };
        Replay(Arc::new(Shared { limits, state: Mutex::new(state), waiting: Mutex::default() }))
    }

    /// What the attempt with this number sends, and the handle that ends it.
    pub(crate) fn body(&self, attempt: u32) -> (Body, ReplayGuard) {
        self.0.state().live.push(attempt);
        let body = Body::new(ReplayBody { replay: self.clone(), attempt, position: 0 });
        (body, ReplayGuard { replay: Some(self.clone()), attempt })
    }

    /// Whether the call is committed to an attempt, and whether the request broke off. The waker is woken when that changes.
    pub(crate) fn look(&self, cx: &Context<'_>) -> (Option<u32>, bool) {
        self.0.wait(cx);
        let state = self.0.state();
        (state.winner, state.broken.is_some())
    }

    /// Commits the call to an attempt: the others end, and nothing is kept any more. Returns the attempt that it is committed to,
    /// which is another one if the request outgrew the buffer meanwhile.
    pub(crate) fn commit(&self, attempt: u32) -> u32 {
        let winner = self.0.state().commit(attempt, &self.0.limits);
        self.0.wake_all();
        winner
    }

    /// Ends an attempt that failed, so that nothing can be committed to it any more, unless something is.
    pub(crate) fn end(&self, attempt: u32) -> Option<u32> {
        let mut state = self.0.state();
        if state.winner.is_none() {
            state.live.retain(|live| *live != attempt);
        }
        state.winner
    }

    /// Ends the request: whatever reads it gets an error.
    pub(crate) fn cancel(&self, code: Code, message: &str) {
        let mut state = self.0.state();
        if state.source.take().is_some() {
            state.broken = Some((code, message.to_owned()));
        }
        drop(state);
        self.0.wake_all();
    }

    /// The status of a request that could not be made or is too large. The server has no part in it.
    pub(crate) fn broken(&self, attempts: u32) -> Option<Status> {
        let (code, message) = self.0.state().broken.clone()?;
        Some(CallFailure::status(code, message, of_code(code).permanent(), attempts, None))
    }
}

/// Ends the request of an attempt when the attempt is dropped.
#[derive(Debug)]
pub(crate) struct ReplayGuard {
    replay: Option<Replay>,
    attempt: u32,
}

impl ReplayGuard {
    /// The attempt goes on without its guard: its response belongs to the caller.
    pub(crate) fn keep(mut self) {
        self.replay = None;
    }
}

impl Drop for ReplayGuard {
    fn drop(&mut self) {
        if let Some(replay) = &self.replay {
            replay.0.state().live.retain(|attempt| *attempt != self.attempt);
            replay.0.wake_all();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, cx: &Context<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The caller's stream has one waker, and several attempts may wait for it.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.release(&self.limits);
    }
}

impl State {
    fn commit(&mut self, attempt: u32, limits: &BufferLimits) -> u32 {
        self.release(limits);
        *self.winner.get_or_insert(attempt)
    }

    /// What is kept is not counted any more.
    fn release(&mut self, limits: &BufferLimits) {
        limits.channel_bytes.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }

    /// The next piece for an attempt at this position.
    fn poll_piece(
        &mut self,
        attempt: u32,
        position: u64,
        limits: &BufferLimits,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece, (Code, String)>>> {
        if !self.live.contains(&attempt) || self.winner.is_some_and(|winner| winner != attempt) {
            let superseded = "this attempt is over".to_owned();
            return Poll::Ready(Some(Err((Code::Cancelled, superseded))));
        }
        if self.winner.is_some() {
            // Nobody else will ask for what this attempt has sent.
            while self.first < position && self.pieces.pop_front().is_some() {
                self.first += 1;
            }
        }
        if let Some(piece) = usize::try_from(position - self.first).ok().and_then(|at| self.pieces.get(at)) {
            return Poll::Ready(Some(Ok(piece.clone())));
        }
        if let Some(broken) = &self.broken {
            return Poll::Ready(Some(Err(broken.clone())));
        }
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        let piece = match std::task::ready!(Pin::new(source).poll_frame(cx)) {
            None => {
                self.source = None;
                return Poll::Ready(None);
            }
            Some(Err(status)) => return self.breaks(status.code(), status.message().to_owned()),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Piece::Data(data),
                Err(frame) => Piece::Trailers(frame.into_trailers().unwrap_or_default()),
            },
        };
        if let Piece::Data(data) = &piece {
            if let Some(Err(size)) = self.sizes.as_mut().map(|sizes| sizes.check(data)) {
                let message = format!(
                    "the request has a message of {size} bytes, which is more than its method allows"
                );
                return self.breaks(Code::ResourceExhausted, message);
            }
            self.keep(data.len(), attempt, limits);
        }
        self.pieces.push_back(piece.clone());
        Poll::Ready(Some(Ok(piece)))
    }

    /// Counts another piece, and commits the call to this attempt if that is more than may be kept.
    fn keep(&mut self, bytes: usize, attempt: u32, limits: &BufferLimits) {
        if self.winner.is_some() {
            return;
        }
        self.bytes += bytes;
        let together = limits.channel_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.bytes > limits.call_bytes_max || together > limits.channel_bytes_max {
            self.commit(attempt, limits);
        }
    }

    fn breaks(&mut self, code: Code, message: String) -> Poll<Option<Result<Piece, (Code, String)>>> {
        self.source = None;
        self.broken = Some((code, message.clone()));
        Poll::Ready(Some(Err((code, message))))
    }
}

/// What one attempt sends.
struct ReplayBody {
    replay: Replay,
    attempt: u32,
    position: u64,
}

impl HttpBody for ReplayBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let shared = self.replay.0.clone();
        // Before the stream is polled: it may wake at once.
        shared.wait(cx);
        let waker = Waker::from(shared.clone());
        let mut state = shared.state();
        let was_open = state.winner.is_none();
        let piece =
            state.poll_piece(self.attempt, self.position, &shared.limits, &mut Context::from_waker(&waker));
        let is_committed = was_open && state.winner.is_some();
        drop(state);
        if piece.is_ready() || is_committed {
            shared.wake_all();
        }
        piece.map(|piece| {
            let frame = piece?.map_err(|(code, message)| Status::new(code, message));
            Some(frame.map(|piece| {
                self.position += 1;
                match piece {
                    Piece::Data(data) => Frame::data(data),
                    Piece::Trailers(trailers) => Frame::trailers(trailers),
                }
            }))
        })
    }

    fn is_end_stream(&self) -> bool {
        let state = self.replay.0.state();
        let all_sent = state.first + state.pieces.len() as u64 <= self.position;
        state.source.is_none() && state.broken.is_none() && all_sent
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A stream without an end that counts its pieces.
    struct Endless(Arc<AtomicU32>);

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"1234")))))
        }
    }

    fn endless(call_bytes_max: usize) -> (Replay, Arc<AtomicU32>, Arc<BufferLimits>) {
        let taken = Arc::new(AtomicU32::new(0));
        let limits =
            BufferLimits { call_bytes_max, channel_bytes_max: 1_000, channel_bytes: AtomicUsize::new(0) };
        let limits = Arc::new(limits);
        (Replay::new(Body::new(Endless(taken.clone())), None, limits.clone()), taken, limits)
    }

    fn poll(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
    }

    fn is_piece(body: &mut Body) -> bool {
        matches!(poll(body), Poll::Ready(Some(Ok(_))))
    }

    /// PRM-4: whatever still reads the request of an attempt that was dropped takes nothing more from the caller's stream.
    #[test]
    fn prm_4_the_request_of_a_dropped_attempt_is_not_read_on() {
        let (replay, taken, limits) = endless(100);
        let (mut first, guard) = replay.body(1);
        let (mut second, second_guard) = replay.body(2);
        assert!(is_piece(&mut first) && is_piece(&mut first));
        drop(guard);
        assert!(matches!(poll(&mut first), Poll::Ready(Some(Err(_)))));
        assert_eq!(taken.load(Ordering::Relaxed), 2);
        assert!(is_piece(&mut second) && is_piece(&mut second), "the other one has the same pieces");
        assert_eq!((taken.load(Ordering::Relaxed), limits.channel_bytes.load(Ordering::Relaxed)), (2, 8));
        drop((first, second, second_guard, replay));
        assert_eq!(limits.channel_bytes.load(Ordering::Relaxed), 0, "nothing is kept any more");
    }

    /// A6: "any messages that have already been sent on that attempt can be immediately freed from the buffer, and any subsequent
    /// messages will be sent without buffering".
    #[test]
    fn adp_2_a_committed_request_is_passed_on_without_being_kept() {
        let (replay, _, limits) = endless(10);
        let (mut body, _guard) = replay.body(1);
        for _ in 0..100 {
            assert!(is_piece(&mut body));
        }
        assert_eq!(replay.0.state().winner, Some(1), "the third piece outgrew the buffer");
        assert!(replay.0.state().pieces.len() <= 1);
        assert_eq!(limits.channel_bytes.load(Ordering::Relaxed), 0);
        assert_eq!((replay.end(1), replay.commit(2)), (Some(1), 1), "the first decision stays");
    }
}
