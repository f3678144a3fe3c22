//! Fencing tokens of a single server: the ids of a stream.
//!
//! # Why a stream?
//! A token has to be larger than every earlier one, also if the server lost its last second: so it is the larger of a counter and
//! the clock, and comparing the two takes a script, which costs the server more than the lock itself. The ids of a stream are
//! exactly that number: Redis takes its clock, or the last id and one more if the clock is behind. The stream is always empty;
//! only its last id is kept.

use redis::{Cmd, cmd};
use seawall::Fault;
use seawall_dist::StoreError;
use seawall_dist::lock::FencingToken;

use crate::Connection;

/// The key of the stream whose ids are the fencing tokens of a single server. It serves all locks of the server, has no time to
/// live, and must not be deleted or evicted.
pub const TOKENS_KEY: &str = "seawall:lock:tokens";

/// The bits of a token that count within a millisecond. The others hold the time, until the year 2109.
const COUNT_BITS: u32 = 21;

/// Draws the next id.
pub(super) fn draw() -> Cmd {
    add("*")
}

fn add(id: &str) -> Cmd {
    let mut command = cmd("XADD");
    command.arg(TOKENS_KEY).arg("MAXLEN").arg(0).arg(id).arg("t").arg("");
    command
}

/// An id: milliseconds since 1970, and a number within the millisecond.
#[derive(Clone, Copy)]
struct StreamId {
    millis: i64,
    count: i64,
}

impl StreamId {
    fn parse(text: &str) -> Result<Self, StoreError> {
        let parsed = text.split_once('-').and_then(|(millis, count)| {
            Some(StreamId { millis: millis.parse().ok()?, count: count.parse().ok()? })
        });
        parsed.ok_or_else(|| {
            StoreError::new(
                "drawing a fencing token",
                Fault::protocol().permanent(),
                format!("`{text}` is no id of a stream"),
            )
        })
    }

    /// The token, unless the millisecond has no number left.
    fn token(self) -> Option<FencingToken> {
        let fits = self.count < 1 << COUNT_BITS && self.millis < 1 << (63 - COUNT_BITS);
        fits.then(|| FencingToken::new(self.millis << COUNT_BITS | self.count))
    }
}

/// The token of an id. A clock that was set back lets the number within the last millisecond grow; when none is left, the stream
/// is moved to the next millisecond.
pub(super) async fn token_of(connection: &Connection, id: &str) -> Result<FencingToken, StoreError> {
    let drawn = StreamId::parse(id)?;
    if let Some(token) = drawn.token() {
        return Ok(token);
    }
    let next = add(&format!("{}-0", drawn.millis + 1));
    // It fails if another process has moved the stream.
    let _ = connection.query::<String>("moving the fencing tokens on", &next).await;
    let id: String = connection.query("drawing a fencing token", &draw()).await?;
    StreamId::parse(&id)?.token().ok_or_else(|| {
        StoreError::new(
            "drawing a fencing token",
            Fault::protocol().permanent(),
            format!("the stream `{TOKENS_KEY}` is at {id}, which no clock of this century reaches; delete it when no lock is held"),
        )
    })
}
