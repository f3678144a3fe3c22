//! Everything that can go wrong, in one list: by which code a program tells it, and what a person does about it.

/// What an answer says that is no success.
pub(crate) struct PageError {
    /// `code` in the answer. It never changes its meaning.
    pub(crate) code: &'static str,
    /// The status that it comes with.
    pub(crate) status: u16,
    /// Whether the same request may go well later.
    pub(crate) retryable: bool,
    /// What has happened.
    pub(crate) meaning: &'static str,
    /// What to do.
    pub(crate) remedy: &'static str,
}

const fn trouble(code: &'static str, status: u16, meaning: &'static str, remedy: &'static str) -> PageError {
    PageError { code, status, retryable: false, meaning, remedy }
}

const fn passing(code: &'static str, status: u16, meaning: &'static str, remedy: &'static str) -> PageError {
    PageError { code, status, retryable: true, meaning, remedy }
}

/// All of them, in the order of their statuses.
#[rustfmt::skip]
pub(crate) const TROUBLES: &[PageError] = &[
    trouble("badRequest", 400, "The request can't be read at all", "Look at how the path is encoded, and whether the body is whole"),
    trouble("notJson", 400, "The body is no JSON", "`message` says where it stops to be"),
    trouble("badVersion", 400, "`If-Match` or `If-None-Match` names no version", "Write `If-Match: \"3\"`, with the version that you have seen, or `If-None-Match: *`"),
    trouble("badKey", 400, "`Idempotency-Key` can't be one", "Use 1 to 200 visible ASCII characters, such as a UUID"),
    trouble("path", 400, "A path to the proxy has `.` or `..` in it", "Write the path as it is meant, below the address of the service"),
    trouble("unauthorised", 401, "There is no key, or none that is good", "Send `Authorization: Bearer KEY`; a key may have expired or been taken back"),
    trouble("unverified", 401, "A webhook does not prove that it comes from its source", "The hub's log says why; its answer does not, because whoever reads it may be somebody who tries"),
    trouble("forbidden", 403, "The key may not do this", "Use a key with the scope that `message` names, or without the limit"),
    trouble("notFound", 404, "There is no such thing, or it is not for this key to see", "Look at the name; what a key may not see looks as if it were not there"),
    trouble("noSuchAction", 404, "There is no such action on this", "`message` names those that there are"),
    trouble("wrongMethod", 405, "There is something at this path, but not for this method", "Look into `/openapi.json` for its methods"),
    trouble("slowBody", 408, "The body of a request to the proxy did not come in time", "Send it faster, or less of it"),
    trouble("conflict", 409, "It does not go together with what is there", "`message` says with what; change that first"),
    trouble("stale", 412, "Somebody has changed it since", "Read it again, and send the change with its new version"),
    trouble("tooLarge", 413, "The body is larger than a request may be", "Send less than 1 MiB; of events, smaller batches"),
    trouble("invalid", 422, "Some fields are wrong", "`errors` says which ones and why, all of them at once"),
    trouble("otherContent", 422, "There is an event of this id, or under this key, with another content", "Give another event another id; the same event must be the same in all but its time"),
    passing("rateLimited", 429, "The rate limit of the service is reached", "Call again after `Retry-After`"),
    trouble("internal", 500, "The hub could not answer: a mistake in it", "Tell us, with the lines of the hub's log that have the `traceId`"),
    passing("seal", 500, "A secret could not be sealed, so it was not kept", "Send it again; if it stays, look at the system's source of randomness"),
    passing("store", 500, "The store could not do it", "Send it again; if it stays, the hub's log says why"),
    trouble("method", 501, "The proxy passes CONNECT and TRACE not on", "Use another method, or connect to the service itself"),
    trouble("upgrade", 501, "The proxy passes no upgrade on, such as of WebSockets", "Connect to the service itself"),
    passing("noConnection", 502, "There is no connection to the service; it has seen nothing", "Call again, or with `mode: sync_or_queue`"),
    passing("broken", 502, "The connection broke before the answer was complete; it may have been done", "Look whether it was done, or call with an `Idempotency-Key`"),
    trouble("tooLarge", 502, "The answer of the service is larger than 10 MiB", "Ask it for less, or go through the proxy, which has no such limit"),
    trouble("impossible", 502, "The service can't be called: its address is forbidden, or its credentials can't be used", "Look at its address, at `--allow-egress`, and say its `auth` again"),
    passing("busy", 503, "The store has more to do than it can, or too many rules are tried at a time", "Send it again after `Retry-After`"),
    passing("circuitOpen", 503, "The circuit of the service is open: it has failed too often", "Call again after `Retry-After`, or with `mode: sync_or_queue`"),
    passing("bulkheadFull", 503, "As many calls to the service are under way as may be", "Call again after `Retry-After`"),
    passing("memoryFull", 503, "The hub holds as many bytes of responses as it may, because clients do not read theirs; nothing was sent to a service", "Ask again after `Retry-After`; `--response-memory` allows more"),
    trouble("responseDropped", 503, "The service has answered, and the hub had no memory left for its response", "Look whether it was done, and ask for less at once; `--response-memory` allows more"),
    passing("paused", 503, "The service is paused", "Somebody has to resume it; `mode: async` keeps the call until then"),
    passing("stuck", 503, "A thread of the hub has stood still for too long", "Start it again; a liveness probe does, and so does its own watchdog"),
    passing("damaged", 503, "A part of the database can't be read any more, and nothing is accepted", "Stop the hub and restore a backup; send it again then"),
    passing("notReady", 503, "The store does not answer", "Wait; a readiness probe does"),
    passing("store", 503, "The store can't be trusted any more, and the hub stops", "Send it again when it is back; the hub's log says why"),
    passing("timeout", 504, "The service did not answer in time; it may have been done", "Look whether it was done, or call with an `Idempotency-Key`"),
    passing("full", 507, "The disk is full", "Make room; the hub goes on by itself"),
];

/// What this code means, with this status.
pub(crate) fn trouble_of(status: u16, code: &str) -> Option<&'static PageError> {
    TROUBLES.iter().find(|trouble| trouble.status == status && trouble.code == code)
}
