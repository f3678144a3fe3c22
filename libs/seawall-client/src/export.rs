//! Dead letters, more of them than fit into memory.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use seawall_api::DeadLetterWithEvidence;
use seawall_http::BodyStream;
use serde_json::Value;

use crate::call::{ApiCall, late, no_response, streaming, text_of};
use crate::error::{ClientError, RawResponse};
use crate::reply::Reply;

/// The largest body of a rejection that is read.
const REJECTION_BYTES_MAX: usize = 1024 * 1024;

/// A stream of dead letters, as lines of JSON.
pub struct LetterStream {
    body: BodyStream,
    /// The longest time that the next chunk may take.
    timeout: Duration,
    /// What was read and not handed out.
    rest: Vec<u8>,
}

impl fmt::Debug for LetterStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LetterStream").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl LetterStream {
    /// Opens a stream. The time limit is for its beginning, and then for each chunk.
    pub(crate) async fn open(mut call: ApiCall<Value>) -> Result<Self, ClientError> {
        let (request, timeout) = (call.request()?.response_bytes_max(u64::MAX), call.time());
        let guard = streaming()?;
        let opened = tokio::time::timeout(timeout, call.client().inner.http.open(&guard, &request)).await;
        let opened =
            opened.map_err(|_| ClientError::Unreachable { reason: late(timeout), timed_out: true })?;
        let opened = opened.map_err(|error| no_response(&error, timeout))?;
        let (status, location) = (opened.status().as_u16(), text_of(opened.headers(), "location"));
        let mut stream = Self { body: opened.into_body(), timeout, rest: Vec::new() };
        if (200..300).contains(&status) {
            return Ok(stream);
        }
        let mut text = Vec::new();
        while let Some(chunk) = stream.chunk().await? {
            text.extend_from_slice(&chunk);
            if text.len() > REJECTION_BYTES_MAX {
                break;
            }
        }
        let response = RawResponse { status, location, text: String::from_utf8_lossy(&text).into_owned() };
        match Reply::<Value>::read(response.clone(), None) {
            Err(error) => Err(error),
            Ok(_) => Err(ClientError::NotAHub(Box::new(response))),
        }
    }

    /// The next bytes as they came; `None` at the end. A stream that breaks off is an error, and no end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest).into()));
        }
        self.read().await
    }

    /// The next dead letter; `None` at the end. A stream that breaks off is an error, and no end.
    pub async fn next(&mut self) -> Result<Option<DeadLetterWithEvidence>, ClientError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return letter(&line).map(Some);
            }
            match self.read().await? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None if self.rest.trim_ascii().is_empty() => return Ok(None),
                None => return letter(&std::mem::take(&mut self.rest)).map(Some),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Bytes>, ClientError> {
        match tokio::time::timeout(self.timeout, self.body.chunk()).await {
            Ok(chunk) => chunk
                .map_err(|error| ClientError::Unreachable { reason: error.to_string(), timed_out: false }),
            Err(_) => Err(ClientError::Unreachable { reason: late(self.timeout), timed_out: true }),
        }
    }
}

fn letter(line: &[u8]) -> Result<DeadLetterWithEvidence, ClientError> {
    serde_json::from_slice(line).map_err(|source| ClientError::Unreadable {
        response: Box::new(RawResponse {
            status: 200,
            text: String::from_utf8_lossy(line).into_owned(),
            location: None,
        }),
        source,
    })
}
