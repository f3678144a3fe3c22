//! The one timer of a call.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::clock::{Clock, Tick, Wait};

pin_project! {
    /// A timer that is made when it is first needed, and moved only forwards in time.
    ///
    /// A call that is ready at once has none. Attempt, back-off and call deadlines share it: it is set to the
    /// nearest one, and where it fires too early for what it is then asked, it is set again.
    pub(crate) struct Timer {
        set_to: Tick,
        #[pin]
        sleep: Kind,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind {
        Unset,
        Tokio { #[pin] sleep: Sleep },
        Custom { sleep: Pin<Box<dyn Future<Output = ()> + Send>> },
    }
}

impl Timer {
    #[inline]
    pub(crate) fn new() -> Self {
        Timer { set_to: Tick::NEVER, sleep: Kind::Unset }
    }

    /// Ready when `at` has come. A timer that was set to an earlier time stays set and is asked again.
    pub(crate) fn poll_until(
        self: Pin<&mut Self>,
        at: Tick,
        clock: &Clock,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let mut this = self.project();
        if at == Tick::NEVER {
            return Poll::Pending;
        }
        loop {
            if matches!(*this.sleep, Kind::Unset) || at < *this.set_to {
                Self::set(this.sleep.as_mut(), at, clock);
                *this.set_to = at;
            }
            let fired = match this.sleep.as_mut().project() {
                KindProj::Unset => unreachable!("it was set above"),
                KindProj::Tokio { sleep } => sleep.poll(cx),
                KindProj::Custom { sleep } => sleep.as_mut().poll(cx),
            };
            if fired.is_pending() {
                // A busy operation may have used up what tokio lets a task do in one go, and then a timer is not even
                // looked at. Time passes all the same.
                if !tokio::task::coop::has_budget_remaining() && clock.precise() >= at {
                    return Poll::Ready(());
                }
                return Poll::Pending;
            }
            if matches!(*this.sleep, Kind::Custom { .. }) {
                // Unlike tokio's, a future of somebody else's may not be polled after it has ended.
                this.sleep.set(Kind::Unset);
            }
            if *this.set_to >= at {
                return Poll::Ready(());
            }
            Self::set(this.sleep.as_mut(), at, clock);
            *this.set_to = at;
        }
    }

    fn set(mut sleep: Pin<&mut Kind>, at: Tick, clock: &Clock) {
        match (clock.wait_until(at), sleep.as_mut().project()) {
            (Wait::Tokio(instant), KindProj::Tokio { sleep }) => sleep.reset(instant),
            (Wait::Tokio(instant), _) => sleep.set(Kind::Tokio { sleep: tokio::time::sleep_until(instant) }),
            (Wait::Custom(future), _) => sleep.set(Kind::Custom { sleep: future }),
        }
    }
}
