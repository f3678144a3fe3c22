//! What a server does with each attempt, in order.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tower_service::Service;

/// The answer to one attempt.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// One message with this content, and `OK`.
    Message(&'static str),
    /// Several messages, each after this time, then this status in trailers.
    Stream(Vec<&'static str>, Duration, Code),
    /// Only trailers with this status.
    Fail(Code),
    /// Only trailers with this status and a pushback.
    Pushback(Code, &'static str),
    /// Headers at once, then the status in trailers.
    HeadersThen(Code),
    /// An HTTP status that no gRPC server sends.
    Http(u16),
    /// Details of a status that are not base64.
    BadDetails,
    /// The reply after this time.
    After(Duration, Box<Reply>),
    /// Nothing, ever.
    Never,
    /// Only trailers with this status, before the request was read.
    FailUnread(Code),
}

impl Reply {
    pub(crate) fn after(self, millis: u64) -> Reply {
        Reply::After(Duration::from_millis(millis), Box::new(self))
    }
}

/// An attempt as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedCall {
    pub(crate) at: Duration,
    pub(crate) headers: HeaderMap,
    /// The messages of the request, without their prefixes; `None` until all of it has arrived.
    pub(crate) body: Option<Bytes>,
    /// Whether the client gave it up before the reply was ready.
    pub(crate) is_cancelled: bool,
}

/// A server that answers as it was told. When the script ends, the last reply is repeated.
#[derive(Clone, Debug)]
pub(crate) struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    began: Instant,
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<ReceivedCall>>,
}

impl Script {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock, which may be paused")]
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = Mutex::new(replies.into_iter().collect());
        Script(Arc::new(Inner { began: Instant::now(), replies, seen: Mutex::default() }))
    }

    pub(crate) fn seen(&self) -> Vec<ReceivedCall> {
        self.0.seen.lock().unwrap().clone()
    }

    /// When each attempt arrived, in milliseconds since the script was made.
    pub(crate) fn times(&self) -> Vec<u128> {
        self.seen().iter().map(|seen| seen.at.as_millis()).collect()
    }

    /// The value of a header in each attempt.
    pub(crate) fn header(&self, name: &str) -> Vec<Option<String>> {
        let value =
            |seen: &ReceivedCall| seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        self.seen().iter().map(value).collect()
    }

    pub(crate) fn attempts(&self) -> usize {
        self.seen().len()
    }

    /// Replaces what is left of the script.
    pub(crate) fn set(&self, replies: impl IntoIterator<Item = Reply>) {
        *self.0.replies.lock().unwrap() = replies.into_iter().collect();
    }

    fn next(&self) -> Reply {
        let mut replies = self.0.replies.lock().unwrap();
        if replies.len() > 1 {
            replies.pop_front().unwrap()
        } else {
            replies.front().expect("a reply").clone()
        }
    }

    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let reply = self.next();
        let (parts, body) = request.into_parts();
        let index = {
            let mut seen = self.0.seen.lock().unwrap();
            let at = self.0.began.elapsed();
            seen.push(ReceivedCall { at, headers: parts.headers, body: None, is_cancelled: false });
            seen.len() - 1
        };
        let mut open = Open { script: self.clone(), index, is_answered: false };
        if !matches!(reply, Reply::FailUnread(_)) {
            match body.collect().await {
                Ok(body) => self.0.seen.lock().unwrap()[index].body = Some(contents(body.to_bytes())),
                // The client gave it up; over the network the stream is reset.
                Err(_) => std::future::pending().await,
            }
        }
        let response = respond(reply).await;
        open.is_answered = true;
        response
    }
}

/// Notices that the client did not wait.
struct Open {
    script: Script,
    index: usize,
    is_answered: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_answered {
            self.script.0.seen.lock().unwrap()[self.index].is_cancelled = true;
        }
    }
}

impl Service<Request<Body>> for Script {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move { Ok(script.answer(request).await) })
    }
}

impl tonic::server::NamedService for Script {
    const NAME: &'static str = "stock.v1.Stock";
}

async fn respond(reply: Reply) -> Response<Body> {
    match reply {
        Reply::Message(text) => stream(vec![text], Duration::ZERO, Code::Ok),
        Reply::Stream(texts, pause, code) => stream(texts, pause, code),
        Reply::HeadersThen(code) => stream(Vec::new(), Duration::from_millis(1), code),
        Reply::Fail(code) | Reply::FailUnread(code) => Status::new(code, "as the script says").into_http(),
        Reply::Pushback(code, value) => {
            let mut response: Response<Body> = Status::new(code, "as the script says").into_http();
            response.headers_mut().insert("grpc-retry-pushback-ms", value.parse().unwrap());
            response
        }
        Reply::Http(status) => Response::builder().status(status).body(Body::empty()).unwrap(),
        Reply::BadDetails => {
            let mut response: Response<Body> = Status::unavailable("as the script says").into_http();
            response.headers_mut().insert("grpc-status-details-bin", "no base64 at all!".parse().unwrap());
            response
        }
        Reply::After(time, reply) => {
            tokio::time::sleep(time).await;
            Box::pin(respond(*reply)).await
        }
        Reply::Never => std::future::pending().await,
    }
}

/// A response with headers, messages and trailers.
fn stream(texts: Vec<&'static str>, pause: Duration, code: Code) -> Response<Body> {
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), (code as i32).into())]);
    let frames = texts.into_iter().map(|text| Frame::data(message(text))).chain([Frame::trailers(trailers)]);
    let frames: VecDeque<Frame<Bytes>> = frames.collect();
    let stream = Frames { frames, pause, sleep: None };
    Response::builder()
        .header("content-type", "application/grpc")
        .body(Body::new(StreamBody::new(stream)))
        .unwrap()
}

struct Frames {
    frames: VecDeque<Frame<Bytes>>,
    pause: Duration,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.pause.is_zero() {
            let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.pause)));
            std::task::ready!(sleep.as_mut().poll(cx));
            this.sleep = None;
        }
        Poll::Ready(this.frames.pop_front().map(Ok))
    }
}

/// A message with its prefix.
fn message(text: &str) -> Bytes {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    Bytes::from([&[0][..], &length[..], text.as_bytes()].concat())
}

/// The messages of a stream, one after the other.
fn contents(mut stream: Bytes) -> Bytes {
    let mut all = Vec::new();
    while stream.len() >= 5 {
        let prefix = stream.split_to(5);
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        all.extend_from_slice(&stream.split_to(length));
    }
    all.into()
}
