//! One attempt.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use tonic::Code;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tower_service::Service;

use super::record::AttemptSpan;
use crate::fault::{TransportError, pushback_of};
use crate::policy::{Failure, Pushback, Reach};
use crate::replay::ReplayGuard;

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// An attempt that is under way.
pub(super) struct Flight {
    /// The number of the attempt among all that were sent, those included that are not counted.
    pub(super) number: u32,
    /// How many counted attempts came before it.
    pub(super) previous: u32,
    future: Pin<Box<dyn Future<Output = Answer> + Send>>,
    pub(super) span: AttemptSpan,
    pub(super) request: ReplayGuard,
}

/// What an attempt ended with.
pub(super) type Answer = Result<Response<Body>, BoxError>;

impl Flight {
    /// Sends an attempt whose body is read through `guard`.
    pub(super) fn start<S, B>(
        mut service: S,
        request: Request<Body>,
        guard: ReplayGuard,
        (number, previous): (u32, u32),
        span: AttemptSpan,
    ) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let future = Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(Body::new))
        });
        Flight { number, previous, future, span, request: guard }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let _in_span = self.span.enter();
        self.future.as_mut().poll(cx)
    }
}

/// How an attempt is judged.
pub(super) enum Outcome {
    /// The headers of a response: the call is committed to it.
    Committed(Response<Body>),
    /// A response without a message and with the status `OK`.
    Empty(Response<Body>),
    /// A status of the server, or of what stands between.
    Refused(Failure, Response<Body>),
    /// An error of the connection.
    Broken(Failure, TransportError, BoxError),
}

pub(super) fn judge(answer: Answer) -> Outcome {
    let response = match answer {
        Ok(mut response) => {
            drop_bad_details(response.headers_mut());
            response
        }
        Err(error) => {
            let (judged, error) = TransportError::of_service(error);
            let failure =
                Failure { code: judged.code as i32, reach: judged.reach, pushback: Pushback::Nothing };
            return Outcome::Broken(failure, judged, error);
        }
    };
    let code = match response.headers().get("grpc-status") {
        Some(status) => Code::from_bytes(status.as_bytes()),
        None if response.status() == http::StatusCode::OK => return Outcome::Committed(response),
        None => of_http(response.status()),
    };
    if code == Code::Ok {
        return Outcome::Empty(response);
    }
    let pushback = pushback_of(response.headers());
    Outcome::Refused(Failure { code: code as i32, reach: Reach::Seen, pushback }, response)
}

/// Takes out details of a status that are not base64: tonic panics when it reads them.
pub(super) fn drop_bad_details(headers: &mut HeaderMap) {
    const DETAILS: &str = "grpc-status-details-bin";
    if headers.contains_key(DETAILS) {
        let metadata = MetadataMap::from_headers(std::mem::take(headers));
        let is_bad = metadata.get_all_bin(DETAILS).iter().any(|details| details.to_bytes().is_err());
        *headers = metadata.into_headers();
        if is_bad {
            headers.remove(DETAILS);
        }
    }
}

/// The status of a response that is not one of gRPC: a proxy or a balancer answered.
fn of_http(status: http::StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}
