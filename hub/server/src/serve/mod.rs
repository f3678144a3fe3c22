//! The hub's front door: connections, their limits, and who gets which request.
//!
//! Requests under `/gateway/` are passed on right here; all others go to the API. Whatever a client does, it costs a bounded
//! amount of memory for a bounded time: headers have to come within a limit, bodies too, and there are only so many connections.

mod body;
mod line;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Timer, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use seawall::Deadline;
use seawall_http::{GATHERED_MAX, gathered};
use seawall_hub_core::metric_names;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tower_service::Service;

use self::body::{ResponseBody, TimedBody};
pub(crate) use self::line::{ConnectionLimits, PeerAddress};
use self::line::{GRACE, ReadTimer};
use crate::dashboard::Dashboard;
use crate::gateway::Gateway;
use crate::http;
use crate::hub::Server;
use crate::responses::{CountedMark, ResponseMemory, SMALL_BYTES};

/// The maximum number of connections; others wait to be accepted.
const CONNECTIONS_MAX: usize = 16 * 1024;
/// However few files the system allows, so many clients are served.
const CONNECTIONS_MIN: usize = 8;
/// The number of file descriptors that are reserved for the hub's own connections.
const FILES_RESERVED: usize = 32;
/// The headers of a request have so long to come, and an idle connection is kept for as long. Longer than clients of ours keep
/// theirs, so that it is they who close it.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
/// The headers of a request may be so large in all; larger ones are answered with 431.
const HEADER_BYTES: usize = 32 * 1024;
/// What is read of a connection before it is handled.
const BUFFER_BYTES: usize = 64 * 1024;
/// What is under way when the hub is asked to stop has so long to end.
const END_WITHIN: Duration = Duration::from_secs(20);
/// A client that keeps us waiting has to take so much within the limit, or it is cut off.
const TAKEN_MIN: usize = 64 * 1024;
/// Where it matters who asks, before anybody knows.
const LOGIN: &str = "/login";
/// After an error of the listener: there are no more file descriptors, mostly.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the API and the gateway of a hub until it is asked to stop. Then it accepts nothing more, and ends when what is under
/// way has.
pub async fn serve(listener: TcpListener, hub: Arc<Server>, stopping: impl Future<Output = ()>) {
    let closing = Arc::new(AtomicBool::new(false));
    let api = Dashboard::beside(http::api(hub.clone()), hub.clone(), closing.clone());
    let (responses, write_timeout) = (hub.responses.clone(), hub.write_timeout);
    let door = Arc::new(RequestRouter { api, gateway: Gateway::new(hub.clone()), responses, write_timeout });
    let (stop, stopped) = watch::channel(());
    let connections_max = connections_max(hub.open_files, files_now());
    let mut connections = JoinSet::new();
    let mut stopping = pin!(stopping);
    let mut observing = pin!(door.gateway.observe());
    let mut looking = pin!(hub.keep_history());
    let mut checking = pin!(hub.keep_egress_checked());
    loop {
        let room = connections.len() < connections_max;
        tokio::select! {
            accepted = listener.accept(), if room => match accepted {
                Ok((tcp, peer)) => {
                    // Answers are written in one go; waiting for more to send only makes them late.
                    let _ = tcp.set_nodelay(true);
                    connections.spawn(door.clone().connection(tcp, ConnectionLimits::new(peer.ip()), stopped.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = connections.join_next() => {}
            () = &mut stopping => break,
            () = &mut observing => {}
            () = &mut looking => {}
            () = &mut checking => {}
        }
    }
    closing.store(true, Ordering::Release);
    drop((listener, stop));
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(END_WITHIN, ended).await;
}

/// How many clients may be connected at once. Some of the files that the system allows are kept for the hub itself: else clients
/// that only hold connections would keep it from delivering anything.
fn connections_max(open_files: Option<u64>, now: usize) -> usize {
    let Some(open_files) = open_files.and_then(|files| usize::try_from(files).ok()) else {
        return CONNECTIONS_MAX;
    };
    let reserve = now + FILES_RESERVED.max(open_files / 8);
    open_files.saturating_sub(reserve).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// How many files the process has open already, as far as the system tells.
fn files_now() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Whether this time has come. One timer does for all: it is set anew only when it fires too early, and not for each request.
fn is_over(alarm: &mut Option<Pin<Box<Sleep>>>, patience: Instant, cx: &mut Context<'_>) -> bool {
    let until = tokio::time::Instant::from_std(patience);
    let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
    while alarm.as_mut().poll(cx).is_ready() {
        if alarm.deadline() >= until {
            return true;
        }
        alarm.as_mut().reset(until);
    }
    false
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

/// Who gets which request.
struct RequestRouter {
    api: Router,
    gateway: Gateway,
    responses: ResponseMemory,
    /// For how long a client may take nothing.
    write_timeout: Duration,
}

impl RequestRouter {
    async fn connection(
        self: Arc<Self>,
        tcp: TcpStream,
        line: Arc<ConnectionLimits>,
        mut stopped: watch::Receiver<()>,
    ) {
        let service = service_fn(|request| self.clone().answer(request, line.clone()));
        let mut builder = http1::Builder::new();
        builder
            // Without a timer the limit below would hold nobody up.
            .timer(ReadTimer(line.clone()))
            .header_read_timeout(HEADERS_WITHIN)
            .max_buf_size(BUFFER_BYTES)
            .max_header_size(HEADER_BYTES);
        let mut connection = pin!(builder.serve_connection(LimitedSocket::new(tcp, line.clone()), service));
        let mut stopped = pin!(stopped.changed());
        let (mut is_told, mut overdue) = (false, None::<(Deadline, Pin<Box<Sleep>>)>);
        let (mut alarm, mut write_alarm) = (None::<Pin<Box<Sleep>>>, None::<Pin<Box<Sleep>>>);
        poll_fn(|cx| {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if !is_told && stopped.as_mut().poll(cx).is_ready() {
                is_told = true;
                connection.as_mut().graceful_shutdown();
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
            if let Some(patience) = line.patience()
                && is_over(&mut alarm, patience, cx)
            {
                line.end_patience();
                return connection.as_mut().poll(cx).map(drop);
            }
            if let Some(since) = line.stalled()
                && is_over(&mut write_alarm, since + self.write_timeout, cx)
            {
                metrics::counter!(metric_names::CLIENTS_CUT_OFF).increment(1);
                line.abort();
                return Poll::Ready(());
            }
            // A client that does not read leaves its answer unpolled, and then nobody but us looks at the time.
            let Some(deadline) = line.deadline() else {
                overdue = None;
                return Poll::Pending;
            };
            // The timer may be of the answer before this one.
            let (_, timer) = match overdue.take().filter(|(of, _)| *of == deadline) {
                Some(same) => overdue.insert(same),
                None => {
                    let timer = tokio::time::sleep(deadline.remaining() + GRACE);
                    overdue.insert((deadline, Box::pin(timer)))
                }
            };
            if timer.as_mut().poll(cx).is_ready() {
                line.abort();
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// In a box, because a connection reserves the room for it also while it is idle.
    fn answer(self: Arc<Self>, request: Request<Incoming>, line: Arc<ConnectionLimits>) -> ResponseFuture {
        if !Gateway::is_for(request.uri().path()) {
            let mut api = self.api.clone();
            let mut request = request.map(|body| axum::body::Body::new(TimedBody::new(body)));
            if request.uri().path() == LOGIN {
                request.extensions_mut().insert(PeerAddress(line.address));
            }
            return Box::pin(async move {
                let response = api.call(request).await?;
                Ok(self.held(response))
            });
        }
        Box::pin(async move {
            Ok(match self.gateway.pass(request, &line).await {
                Ok(answer) => answer.map(ResponseBody::Relay),
                Err(refused) => refused.map(ResponseBody::own),
            })
        })
    }

    /// Returns a response of the hub's own, if there is memory for it; else a refusal. One that is made piece by piece takes care
    /// of its memory itself.
    fn held(&self, response: Response<axum::body::Body>) -> Response<ResponseBody> {
        let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| *bytes > SMALL_BYTES);
        match bytes.filter(|_| response.extensions().get::<CountedMark>().is_none()) {
            None => response.map(ResponseBody::own),
            Some(bytes) => match self.responses.try_take(bytes) {
                Some(held) => response.map(|body| ResponseBody::Own(body, Some(held))),
                None => http::no_memory_left().map(ResponseBody::own),
            },
        }
    }
}

/// The socket of a connection.
struct LimitedSocket {
    io: TokioIo<TcpStream>,
    line: Arc<ConnectionLimits>,
    /// The number of bytes that the client still has to read, while it keeps the hub waiting. It is zero otherwise, so that this
    /// costs nothing then.
    untaken: usize,
}

impl LimitedSocket {
    fn new(tcp: TcpStream, line: Arc<ConnectionLimits>) -> Self {
        LimitedSocket { io: TokioIo::new(tcp), line, untaken: 0 }
    }

    /// Writes down since when a client takes nothing. One that takes a byte now and then is no better: it is waited for until it
    /// has taken [`TAKEN_MIN`], or all that there is.
    fn written(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Pending if self.untaken == 0 => {
                self.untaken = TAKEN_MIN;
                self.line.stall(Some(ReadTimer(self.line.clone()).now()));
            }
            Poll::Ready(Ok(taken)) if self.untaken > 0 => {
                self.untaken = self.untaken.saturating_sub(*taken);
                if self.untaken == 0 {
                    self.line.stall(None);
                }
            }
            _ => {}
        }
        polled
    }
}

impl Drop for LimitedSocket {
    fn drop(&mut self) {
        if self.line.aborted.load(Ordering::Relaxed) {
            // An answer without a length ends with its connection: only a reset says that this was not the end.
            let _ = self.io.inner().set_zero_linger();
        }
    }
}

impl Read for LimitedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl Write for LimitedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.io).poll_write(cx, buf);
        this.written(polled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.untaken > 0 {
            // Whoever flushes has written all that there is.
            this.untaken = 0;
            this.line.stall(None);
        }
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.line.aborted.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let io = Pin::new(&mut this.io);
        let polled = match gathered(bufs, &mut [0; GATHERED_MAX]) {
            Some(one) => io.poll_write(cx, one),
            None => io.poll_write_vectored(cx, bufs),
        };
        this.written(polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-8: some files are kept for the hub itself, and some clients are served however few there are.
    #[test]
    fn prm_8_clients_do_not_get_all_files() {
        assert_eq!(connections_max(None, 40), CONNECTIONS_MAX);
        assert_eq!(connections_max(Some(u64::MAX), 40), CONNECTIONS_MAX);
        assert_eq!(connections_max(Some(1_024), 40), 1_024 - 40 - 128);
        assert_eq!(connections_max(Some(100), 40), 100 - 40 - 32);
        assert_eq!(connections_max(Some(64), 40), CONNECTIONS_MIN);
    }
}
