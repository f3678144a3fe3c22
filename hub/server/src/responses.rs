//! The memory that responses take until their clients have read them.
//!
//! # Why is it counted?
//! A client decides how fast it reads. One that asks for ten megabytes and reads nothing costs ten megabytes, and a thousand of
//! them cost the process. So every large response takes its bytes from one budget before it is held, and gives them back when
//! the last of them is written or dropped. When the budget is used up, new work is refused; it is never used beyond its limit.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Body as _;
use seawall_http::{BodyStream, HttpError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What responses may take in all, if nobody says otherwise: twenty-five of the largest.
pub const BYTES_USUAL: u64 = 256 * 1024 * 1024;
/// Less would not hold one large response and the next.
pub const BYTES_MIN: u64 = 32 * 1024 * 1024;
/// A response of at most so many bytes is not counted: the number of connections bounds those.
pub(crate) const SMALL_BYTES: usize = 16 * 1024;

/// The unit in which the budget is counted.
const UNIT: usize = 1024;
/// The memory that is first reserved for a body of unknown length; after that it doubles.
const STEP: usize = 64 * 1024;
/// What a service announces of its body is believed up to the largest body that is read at all.
const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// The number of requests with large responses that run at once. The memory that they use until their response is made is not
/// counted.
const READERS_MAX: usize = 4;

/// The memory for responses. A handle: clones share everything.
#[derive(Clone)]
pub(crate) struct ResponseMemory {
    free: Arc<Semaphore>,
    units: u32,
    readers: Arc<Semaphore>,
}

impl ResponseMemory {
    /// Creates a limit of this many bytes in total.
    pub(crate) fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT as u64).unwrap_or(u32::MAX);
        let (free, readers) = (Semaphore::new(units as usize), Semaphore::new(READERS_MAX));
        ResponseMemory { free: Arc::new(free), units, readers: Arc::new(readers) }
    }

    /// Takes so many bytes, if they are free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<HeldBytes> {
        let permit = self.free.clone().try_acquire_many_owned(units(bytes)).ok()?;
        Some(HeldBytes(permit))
    }

    /// Takes so many bytes, and waits for them. More than there are in all are as many as there are.
    pub(crate) async fn take(&self, bytes: usize) -> Option<HeldBytes> {
        let units = units(bytes).min(self.units);
        self.free.clone().acquire_many_owned(units).await.ok().map(HeldBytes)
    }

    /// Waits for a turn to read what may be large, and to make a response of it. Nobody who has one waits for memory.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.readers.clone().acquire_owned().await.ok()
    }

    /// True when there is no room for the largest response: then nothing is begun that may have one.
    pub(crate) fn is_full(&self) -> bool {
        self.free.available_permits() < units(BODY_BYTES_MAX) as usize
    }

    /// How many bytes are taken.
    pub(crate) fn taken(&self) -> u64 {
        (self.units as usize).saturating_sub(self.free.available_permits()) as u64 * UNIT as u64
    }

    /// Reads a whole body, counted while it comes.
    pub(crate) async fn read(&self, mut body: BodyStream) -> Result<Bytes, BodyReadError> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut held = self.try_take(announced.min(BODY_BYTES_MAX)).ok_or(BodyReadError::NoMemory)?;
        let mut all = Vec::with_capacity(announced.min(BODY_BYTES_MAX));
        while let Some(piece) = body.chunk().await.map_err(BodyReadError::Broken)? {
            if all.len() + piece.len() > all.capacity() {
                let more = piece.len().max(STEP).max(all.len());
                held.add(self.try_take(more).ok_or(BodyReadError::NoMemory)?);
                all.reserve_exact(more);
            }
            all.extend_from_slice(&piece);
        }
        Ok(held.of(all.into()))
    }
}

impl fmt::Debug for ResponseMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseMemory").field("taken", &self.taken()).finish_non_exhaustive()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Why a body was not read to its end.
pub(crate) enum BodyReadError {
    /// There was no memory left for it.
    NoMemory,
    /// It did not come whole.
    Broken(HttpError),
}

/// Bytes of the budget. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct HeldBytes(OwnedSemaphorePermit);

impl HeldBytes {
    /// Takes these over.
    pub(crate) fn add(&mut self, more: HeldBytes) {
        self.0.merge(more.0);
    }

    /// Gives back what is above so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let rest = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(rest));
    }

    /// The same bytes; what is held for them is given back when the last part of them is dropped.
    pub(crate) fn of(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _held: self })
    }
}

/// Says of a response that its memory is counted already.
#[derive(Clone)]
pub(crate) struct CountedMark;

/// Bytes with what is held for them.
struct CountedBytes {
    bytes: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-8: what is taken is given back, whole or in parts, and never more than there is.
    #[test]
    fn prm_8_what_is_held_is_given_back_with_its_last_byte() {
        let memory = ResponseMemory::new(1024 * 1024);
        assert!(memory.is_full() && !ResponseMemory::new(BYTES_MIN).is_full());
        let mut held = memory.try_take(900_000).unwrap();
        assert!(memory.try_take(200_000).is_none());
        held.shrink_to(500_000);
        held.add(memory.try_take(200_000).unwrap());
        let bytes = held.of(vec![7; 700_000].into());
        let part = bytes.slice(10..20);
        drop(bytes);
        assert!(memory.taken() >= 700_000, "a part of it is there still");
        assert_eq!(&part[..], [7; 10]);
        drop(part);
        assert_eq!(memory.taken(), 0);
        let all = memory.try_take(1024 * 1024).unwrap();
        assert!(memory.try_take(1).is_none());
        drop(all);
    }
}
