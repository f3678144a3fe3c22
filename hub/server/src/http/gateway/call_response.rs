//! The response to `:call`: what the service has answered, within the hub's envelope.
//!
//! The body of the service is in memory once, as it came. What is written of it is made piece by piece while the client reads, and
//! so long the call keeps its place in the bulkhead.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use seawall::bulkhead::OwnedPermit;
use seawall_api::HeaderValue;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::transport::FullResponse;
use serde_json::{Value, json};

use crate::http::gateway::is_json_type;
use crate::http::raw::is_shallow_json;
use crate::http::reply::envelope;
use crate::responses::{CountedMark, HeldBytes};

/// What a call takes beside the body of the service: its headers, and the pieces that are under way to the client.
pub(crate) const ROOM_BYTES: usize = 64 * 1024;
/// The size of a chunk of the body: a multiple of three, so that Base64 needs no padding in between.
const PIECE_BYTES: usize = 12 * 1024;

/// What is said of a call beside the answer.
pub(crate) struct CallSummary {
    pub(crate) attempts: u32,
    pub(crate) latency_ms: u64,
    pub(crate) circuit: Option<&'static str>,
    /// The trace of the request.
    pub(crate) trace: Option<TraceId>,
}

/// What a call holds until its response is written: memory, and its place in the bulkhead.
type HeldResources = (HeldBytes, Option<Arc<OwnedPermit>>);

/// How the body of a service stands in the response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyEncoding {
    /// As it is.
    Json,
    /// As a string of JSON.
    Text,
    /// As a string in base 64.
    Base64,
}

/// What the service answered. Its body is put in as it is, where it is JSON.
pub(crate) fn call_response(whole: &FullResponse, about: &CallSummary, holding: HeldResources) -> Response {
    let (encoding, body) = encoded(whole);
    let mut headers: BTreeMap<&str, HeaderValue> = BTreeMap::new();
    for (name, value) in &whole.headers {
        let value = String::from_utf8_lossy(value).into_owned();
        match headers.get_mut(&**name) {
            None => drop(headers.insert(name, HeaderValue::One(value))),
            Some(HeaderValue::Many(values)) => values.push(value),
            Some(HeaderValue::One(one)) => {
                let values = vec![std::mem::take(one), value];
                headers.insert(name, HeaderValue::Many(values));
            }
        }
    }
    let (before, after) = envelope(StatusCode::OK, about.trace);
    let (quote, word) = match encoding {
        BodyEncoding::Json => ("", "json"),
        BodyEncoding::Text => ("\"", "text"),
        BodyEncoding::Base64 => ("\"", "base64"),
    };
    let head =
        format!(r#"{before}{{"httpStatus":{},"headers":{},"body":{quote}"#, whole.status, json!(headers),);
    let tail = format!(
        r#"{quote},"bodyEncoding":"{word}","attempts":{},"latencyMs":{},"circuit":{},"fallback":false}}{after}"#,
        about.attempts,
        about.latency_ms,
        Value::from(about.circuit),
    );
    let length = head.len() + encoding.length(&body) + tail.len();
    let pieces = CallBody {
        head: Some(head.into()),
        body,
        encoding,
        tail: Some(tail.into()),
        left: length as u64,
        _holding: holding,
    };
    let mut response =
        (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], Body::new(pieces)).into_response();
    response.extensions_mut().insert(CountedMark);
    response
}

fn encoded(whole: &FullResponse) -> (BodyEncoding, Bytes) {
    let Ok(text) = std::str::from_utf8(&whole.body) else {
        return (BodyEncoding::Base64, whole.body.clone());
    };
    let kind = whole.headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value);
    let may_be_json = kind.is_none_or(|kind| is_json_type(&String::from_utf8_lossy(kind)));
    if may_be_json && is_shallow_json(text) {
        return (BodyEncoding::Json, whole.body.slice_ref(text.trim().as_bytes()));
    }
    (BodyEncoding::Text, whole.body.clone())
}

impl BodyEncoding {
    /// How many bytes all of this becomes.
    fn length(self, body: &[u8]) -> usize {
        match self {
            BodyEncoding::Json => body.len(),
            BodyEncoding::Text => body.iter().map(|byte| escaped_length(*byte)).sum(),
            BodyEncoding::Base64 => body.len().div_ceil(3) * 4,
        }
    }

    /// The next piece, taken from the beginning of what is left.
    fn piece(self, left: &mut Bytes) -> Bytes {
        let mut end = left.len().min(PIECE_BYTES);
        if self == BodyEncoding::Text {
            // A character is not taken apart: what goes on with one begins with the bits 10.
            while end < left.len() && left[end] & 0b1100_0000 == 0b1000_0000 {
                end -= 1;
            }
        }
        let piece = left.split_to(end);
        match self {
            BodyEncoding::Json => piece,
            BodyEncoding::Text => {
                let quoted = Value::from(String::from_utf8_lossy(&piece)).to_string();
                let end = quoted.len() - 1;
                Bytes::from(quoted).slice(1..end)
            }
            BodyEncoding::Base64 => STANDARD.encode(&piece).into(),
        }
    }
}

/// How long a byte is in a string of JSON.
fn escaped_length(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// The body of the response.
struct CallBody {
    head: Option<Bytes>,
    /// What is left of the service's body.
    body: Bytes,
    encoding: BodyEncoding,
    tail: Option<Bytes>,
    /// How many bytes are still to be written.
    left: u64,
    _holding: HeldResources,
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let piece = match this.head.take() {
            Some(head) => Some(head),
            None if !this.body.is_empty() => Some(this.encoding.piece(&mut this.body)),
            None => this.tail.take(),
        };
        this.left -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use seawall_api::{CallResponse, Envelope};

    use super::*;

    fn written(encoding: BodyEncoding, body: &[u8]) -> Vec<u8> {
        let (mut left, mut all) = (Bytes::copy_from_slice(body), Vec::new());
        while !left.is_empty() {
            all.extend_from_slice(&encoding.piece(&mut left));
        }
        assert_eq!(all.len(), encoding.length(body), "{encoding:?}");
        all
    }

    /// API-4: the response that is written by hand is the one that its type says.
    #[tokio::test]
    async fn api_4_the_response_to_a_call_is_a_value_of_its_type() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned().into());
        let headers = vec![header("via", "a"), header("x-b", "1"), header("via", "b"), header("via", "c")];
        for (body, encoding) in
            [("{\"a\": [1]}", "json"), ("a\"b\n", "text"), ("\u{0}", "text"), ("", "text")]
        {
            let whole = FullResponse {
                status: 418,
                fault: None,
                headers: headers.clone(),
                body: body.to_owned().into(),
            };
            let about = CallSummary { attempts: 2, latency_ms: 7, circuit: Some("halfOpen"), trace: None };
            let memory = crate::responses::ResponseMemory::new(1024 * 1024);
            let held = memory.try_take(ROOM_BYTES).unwrap();
            let response = call_response(&whole, &about, (held, None));
            let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let written: Envelope<Value> = serde_json::from_slice(&bytes).unwrap();
            let read: Envelope<CallResponse> = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(written.data, json!(read.data));
            assert_eq!((read.data.body_encoding.as_str(), read.data.http_status), (encoding, 418), "{body}");
            let via = ["a", "b", "c"].map(str::to_owned).to_vec();
            assert_eq!(read.data.headers["via"], HeaderValue::Many(via));
        }
    }

    /// HUB-2: a body that is written in pieces is the same as one that is written at once, and as long as was said before.
    #[test]
    fn hub_2_a_body_in_pieces_is_the_same_as_in_one() {
        let text: String =
            "aé\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}𝄞€".chars().cycle().take(3 * PIECE_BYTES).collect();
        for text in ["", "x", &text, &text[1..], &text[3..]] {
            let whole = Value::from(text).to_string();
            assert_eq!(written(BodyEncoding::Text, text.as_bytes()), &whole.as_bytes()[1..whole.len() - 1]);
        }
        for length in [0, 1, 2, 3, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 2] {
            let body: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            assert_eq!(written(BodyEncoding::Base64, &body), STANDARD.encode(&body).as_bytes(), "{length}");
            assert_eq!(written(BodyEncoding::Json, &body), body);
        }
    }
}
