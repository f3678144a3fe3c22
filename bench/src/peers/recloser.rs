//! recloser: a ring of the last 100 calls, open at half of them failing. These are its own defaults.

use recloser::{AsyncRecloser, Recloser};

use super::COOLDOWN;
use crate::body::with_runtime;
use crate::op::{Kind, blocking_op, op};
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    let closed = breaker();
    rows.calls(Group::BreakerCount, "recloser, 100 calls", move || {
        let breaker = closed.clone();
        async move |kind| breaker.call(op(kind)).await
    });

    let blocking = Recloser::custom().error_rate(0.5).closed_len(100).open_wait(COOLDOWN).build();
    rows.plain(Group::BreakerBlocking, "recloser, 100 calls, blocking", move || {
        blocking.call(blocking_op).is_ok()
    });

    let open = breaker();
    with_runtime(|runtime| {
        while runtime
            .block_on(open.call(op(Kind::Failing)))
            .is_err_and(|error| !matches!(error, recloser::Error::Rejected))
        {}
    });
    rows.rejections("recloser, open", move || {
        let breaker = open.clone();
        async move |kind| breaker.call(op(kind)).await
    });

    rows.footprint("recloser, 100 calls", breaker, async |breaker, kind| breaker.call(op(kind)).await);
}

pub(super) fn breaker() -> AsyncRecloser {
    Recloser::custom().error_rate(0.5).closed_len(100).open_wait(COOLDOWN).build().into()
}
