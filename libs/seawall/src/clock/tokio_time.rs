//! Tokio's clock as the default one, for tests on paused time.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use super::Tick;

/// Where the origin lies on the scale of ticks. Each paused runtime freezes a clock of its own, which may be
/// behind the origin that another test fixed first; a day of room keeps all of them above zero.
const ROOM: Duration = Duration::from_secs(24 * 3600);

fn origin() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the origin must not be a paused clock's reading")]
    let origin = *ORIGIN.get_or_init(std::time::Instant::now);
    origin.into()
}

pub(super) fn now() -> Tick {
    let origin = origin();
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the ban points to")]
    let now = Instant::now();
    let offset = if now >= origin { ROOM + (now - origin) } else { ROOM.saturating_sub(origin - now) };
    Tick::ZERO + offset
}

pub(super) fn instant_of(at: Tick) -> Instant {
    /// As in the system clock: a timer further away is as good as none.
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let offset = at.since(Tick::ZERO).min(FAR);
    if offset >= ROOM { origin() + (offset - ROOM) } else { origin() - (ROOM - offset) }
}
