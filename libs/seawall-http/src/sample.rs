//! Reading the body of an answer: the whole of it, or only its beginning.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::error::{Cause, HttpError};
use crate::response::Cut;

/// An answer of which only the beginning is kept is read on for so many bytes, so that its connection can be used again.
const READ_ON_MAX: usize = 1024 * 1024;
/// The part of the time that is left for whoever waits for the result, when an answer does not end.
const MARGIN_MAX: Duration = Duration::from_millis(100);

/// Reads the beginning of an answer. What is missing is no error: the status has come, and it decides.
pub(crate) async fn sample(mut body: Incoming, keep: usize, time: Option<Duration>) -> (Bytes, Option<Cut>) {
    let mut kept = Sample { first: Bytes::new(), more: BytesMut::new(), read: 0 };
    if body.is_end_stream() {
        return (kept.first, None);
    }
    let cut = match time {
        None => kept.read_from(&mut body, keep).await,
        Some(time) => {
            // A guard that gives up would take the status with it.
            let time = time.saturating_sub(MARGIN_MAX.min(time / 10));
            let read = tokio::time::timeout(time, kept.read_from(&mut body, keep));
            read.await.unwrap_or(Some(Cut::Late))
        }
    };
    (kept.into_bytes(keep), cut)
}

/// What was read so far, which stays when the time is over.
struct Sample {
    /// Most answers come in one piece, which then needs no copy.
    first: Bytes,
    more: BytesMut,
    read: usize,
}

impl Sample {
    async fn read_from(&mut self, body: &mut Incoming, keep: usize) -> Option<Cut> {
        while let Some(frame) = body.frame().await {
            let data = match frame {
                Ok(frame) => frame.into_data(),
                Err(error) => return Some(Cut::BrokeOff { cause: error.to_string() }),
            };
            let Ok(data) = data else { continue };
            if self.first.is_empty() {
                self.first = data.clone();
            } else if self.first.len() + self.more.len() < keep {
                let room = keep - self.first.len() - self.more.len();
                self.more.extend_from_slice(&data[..data.len().min(room)]);
            }
            self.read = self.read.saturating_add(data.len());
            if self.read > READ_ON_MAX {
                break;
            }
        }
        (self.read > keep).then_some(Cut::TooLarge { kept: keep })
    }

    fn into_bytes(self, keep: usize) -> Bytes {
        if self.more.is_empty() {
            // A piece of a large buffer would hold all of it.
            return match self.first.len() {
                length if length > keep => Bytes::copy_from_slice(&self.first[..keep]),
                _ => self.first,
            };
        }
        let mut all = BytesMut::with_capacity(self.first.len() + self.more.len());
        all.extend_from_slice(&self.first);
        all.extend_from_slice(&self.more);
        all.freeze()
    }
}

/// Reads a whole answer, as long as it is no larger than `limit`. It is counted while it is read: what is too large is never
/// held, and never cut short.
pub(crate) async fn collect(mut body: Incoming, limit: u64) -> Result<Bytes, HttpError> {
    let too_large = || HttpError::from(Cause::TooLarge { limit });
    if body.size_hint().lower() > limit {
        return Err(too_large());
    }
    // Most answers come in one piece, which then needs no copy.
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| Cause::Body(error.into()))?.into_data() else { continue };
        let read = if all.is_empty() { first.len() } else { all.len() };
        if (read + data.len()) as u64 > limit {
            return Err(too_large());
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            // What the peer announces is checked against the limit above, but it is still only an announcement.
            let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(1 << 20);
            all.reserve(first.len() + data.len() + announced);
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
