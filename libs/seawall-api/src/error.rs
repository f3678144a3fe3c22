//! The envelope of responses, and the list of all errors.

use serde::{Deserialize, Serialize};

use crate::word::words;

/// The envelope of a successful response
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<T> {
    /// `ok`, or `accepted` for what is done later.
    pub status: String,
    /// The content.
    pub data: T,
    /// A message for people.
    pub message: Option<String>,
    /// Id of the request in the hub's log.
    pub trace_id: String,
}

/// The body of every error response
// Only the code is required, so that a client says what it can about the error of another version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Error", example = serde_json::json!({
    "status": "error", "data": null, "code": "invalid", "message": "some fields are invalid; see `errors`",
    "retryable": false, "errors": [{"field": "address", "reason": "required"}],
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
})))]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// Always `error`
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("const" = "error", "default" = "error")))]
    pub status: String,
    /// Null, except for calls: what is known about the failed call
    #[serde(default)]
    pub data: serde_json::Value,
    /// For programs: the meaning never changes
    pub code: ErrorCode,
    /// For people: the wording may change
    #[serde(default)]
    pub message: String,
    /// True if a retry of the same request may succeed
    #[serde(default)]
    pub retryable: bool,
    /// Invalid fields with their reasons
    #[serde(default)]
    pub errors: Vec<FieldProblem>,
    /// Id of the request in the hub's log
    #[serde(default)]
    pub trace_id: String,
}

/// An invalid field
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldProblem {
    /// Path of the field: `auth.type`, `events[3].id`; empty for the whole body
    pub field: String,
    /// Reason, for people
    pub reason: String,
}

words! {
    /// The code of an error. Its meaning never changes; [`ERRORS`] describes it.
    ErrorCode {
        /// The request can't be read.
        BadRequest = "badRequest",
        /// The body is not valid JSON.
        NotJson = "notJson",
        /// `If-Match` or `If-None-Match` is not a version.
        BadVersion = "badVersion",
        /// `Idempotency-Key` is invalid.
        BadKey = "badKey",
        /// The path of a proxy request contains `.` or `..`.
        Path = "path",
        /// The key is missing or not valid.
        Unauthorised = "unauthorised",
        /// The verification of a webhook failed.
        Unverified = "unverified",
        /// The key lacks the permission.
        Forbidden = "forbidden",
        /// Not found, or not visible to this key.
        NotFound = "notFound",
        /// Unknown action.
        NoSuchAction = "noSuchAction",
        /// The path does not support this method.
        WrongMethod = "wrongMethod",
        /// The body of a proxy request did not arrive in time.
        SlowBody = "slowBody",
        /// The request conflicts with the current state.
        Conflict = "conflict",
        /// Changed concurrently.
        Stale = "stale",
        /// The request body is too large.
        TooLarge = "tooLarge",
        /// Some fields are invalid.
        Invalid = "invalid",
        /// The event id or idempotency key was used before with different content.
        OtherContent = "otherContent",
        /// The rate limit of the service is exceeded.
        RateLimited = "rateLimited",
        /// Internal error of the hub.
        Internal = "internal",
        /// A secret could not be encrypted and was not stored.
        Seal = "seal",
        /// The store failed.
        Store = "store",
        /// The proxy does not forward CONNECT and TRACE.
        Method = "method",
        /// The proxy does not forward upgrades, such as WebSockets.
        Upgrade = "upgrade",
        /// The connection to the service failed; it received nothing.
        NoConnection = "noConnection",
        /// The connection broke before the response was complete; the request may have been processed.
        Broken = "broken",
        /// The service can't be called: its address is forbidden, or its credentials are unusable.
        Impossible = "impossible",
        /// The store is overloaded, or too many rules are being evaluated.
        Busy = "busy",
        /// The circuit of the service is open: too many attempts failed.
        CircuitOpen = "circuitOpen",
        /// The maximum number of concurrent calls to the service is reached.
        BulkheadFull = "bulkheadFull",
        /// The memory for unread responses is used up; no request was sent to a service.
        MemoryFull = "memoryFull",
        /// The service responded, but the hub had no memory left for the response.
        ResponseDropped = "responseDropped",
        /// The service is paused.
        Paused = "paused",
        /// A thread of the hub is stuck.
        Stuck = "stuck",
        /// The database is damaged, and nothing is accepted.
        Damaged = "damaged",
        /// The store does not respond.
        NotReady = "notReady",
        /// The service did not respond in time; the request may have been processed.
        Timeout = "timeout",
        /// The disk is full.
        Full = "full",
    }
}

/// An error that the API may return
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorEntry {
    /// The `code` of the response. It never changes its meaning.
    pub code: &'static str,
    /// The HTTP status.
    #[cfg_attr(feature = "schema", schemars(range(min = 400, max = 599)))]
    pub status: u16,
    /// True if a retry of the same request may succeed.
    pub retryable: bool,
    /// The meaning of the error.
    pub meaning: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl ErrorEntry {
    /// The entry for a status and a code.
    #[must_use]
    pub fn find(status: u16, code: &str) -> Option<&'static Self> {
        ERRORS.iter().find(|entry| entry.status == status && entry.code == code)
    }
}

const fn lasting(code: &'static str, status: u16, meaning: &'static str, remedy: &'static str) -> ErrorEntry {
    ErrorEntry { code, status, retryable: false, meaning, remedy }
}

const fn passing(code: &'static str, status: u16, meaning: &'static str, remedy: &'static str) -> ErrorEntry {
    ErrorEntry { code, status, retryable: true, meaning, remedy }
}

/// All errors, ordered by status.
#[rustfmt::skip]
pub const ERRORS: &[ErrorEntry] = &[
    lasting("badRequest", 400, "The request can't be read", "Check the encoding of the path and that the body is complete"),
    lasting("notJson", 400, "The body is not valid JSON", "`message` names the position of the problem"),
    lasting("badVersion", 400, "`If-Match` or `If-None-Match` is not a version", "Send `If-Match: \"3\"` with the expected version, or `If-None-Match: *`"),
    lasting("badKey", 400, "`Idempotency-Key` is invalid", "Use 1 to 200 visible ASCII characters, such as a UUID"),
    lasting("path", 400, "The path of a proxy request contains `.` or `..`", "Send the normalised path, below the address of the service"),
    lasting("unauthorised", 401, "The key is missing or not valid", "Send `Authorization: Bearer KEY`; the key may have expired or been revoked"),
    lasting("unverified", 401, "The verification of a webhook failed", "See the hub's log for the cause; the response does not name it, so that it can't help an attacker"),
    lasting("forbidden", 403, "The key lacks the permission", "Use a key with the scope that `message` names, or without the restriction"),
    lasting("notFound", 404, "Not found, or not visible to this key", "Check the name; what a key may not see is reported as not found"),
    lasting("noSuchAction", 404, "Unknown action", "`message` lists the known actions"),
    lasting("wrongMethod", 405, "The path does not support this method", "See `/openapi.json` for the methods of the path"),
    lasting("slowBody", 408, "The body of a proxy request did not arrive in time", "Send it faster, or send a smaller body"),
    lasting("conflict", 409, "The request conflicts with the current state", "`message` names the conflict; resolve it first"),
    lasting("stale", 412, "Changed concurrently", "Read it again, and send the change with its current version"),
    lasting("tooLarge", 413, "The request body is too large", "Send less than 1 MiB; for events, send smaller batches"),
    lasting("invalid", 422, "Some fields are invalid", "`errors` lists every invalid field with its reason"),
    lasting("otherContent", 422, "The event id or idempotency key was used before with different content", "Use a new id for a new event; a duplicate may differ only in its time"),
    passing("rateLimited", 429, "The rate limit of the service is exceeded", "Retry after `Retry-After`"),
    lasting("internal", 500, "Internal error of the hub", "Report it, with the lines of the hub's log that have the `traceId`"),
    passing("seal", 500, "A secret could not be encrypted and was not stored", "Retry; if it persists, check the system's source of randomness"),
    passing("store", 500, "The store failed", "Retry; if it persists, see the hub's log"),
    lasting("method", 501, "The proxy does not forward CONNECT and TRACE", "Use another method, or connect to the service directly"),
    lasting("upgrade", 501, "The proxy does not forward upgrades, such as WebSockets", "Connect to the service directly"),
    passing("noConnection", 502, "The connection to the service failed; it received nothing", "Retry, or call with `mode: sync_or_queue`"),
    passing("broken", 502, "The connection broke before the response was complete; the request may have been processed", "Check whether it was processed, or call with an `Idempotency-Key`"),
    lasting("tooLarge", 502, "The response of the service is larger than 10 MiB", "Request less, or use the proxy, which has no such limit"),
    lasting("impossible", 502, "The service can't be called: its address is forbidden, or its credentials are unusable", "Check its address and `--allow-egress`, and set its `auth` again"),
    passing("busy", 503, "The store is overloaded, or too many rules are being evaluated", "Retry after `Retry-After`"),
    passing("circuitOpen", 503, "The circuit of the service is open: too many attempts failed", "Retry after `Retry-After`, or call with `mode: sync_or_queue`"),
    passing("bulkheadFull", 503, "The maximum number of concurrent calls to the service is reached", "Retry after `Retry-After`"),
    passing("memoryFull", 503, "The memory for unread responses is used up; no request was sent to a service", "Retry after `Retry-After`; `--response-memory` raises the limit"),
    lasting("responseDropped", 503, "The service responded, but the hub had no memory left for the response", "Check whether it was processed, and request less at a time; `--response-memory` raises the limit"),
    passing("paused", 503, "The service is paused", "Resume the service; `mode: async` queues the call until then"),
    passing("stuck", 503, "A thread of the hub is stuck", "Restart the hub; a liveness probe and the watchdog do so"),
    passing("damaged", 503, "The database is damaged, and nothing is accepted", "Stop the hub and restore a backup, then retry"),
    passing("notReady", 503, "The store does not respond", "Wait until the readiness probe succeeds"),
    passing("store", 503, "The store is no longer reliable, and the hub stops", "Retry when the hub is back; see its log for the cause"),
    passing("timeout", 504, "The service did not respond in time; the request may have been processed", "Check whether it was processed, or call with an `Idempotency-Key`"),
    passing("full", 507, "The disk is full", "Free disk space; the hub then continues on its own"),
];

#[cfg(test)]
mod tests {
    use super::*;

    // API-1: the list of errors and the words of the type are the same.
    #[test]
    fn api_1_every_code_has_an_entry_and_every_entry_a_code() {
        let mut listed: Vec<&str> = ERRORS.iter().map(|entry| entry.code).collect();
        let mut words = ErrorCode::WORDS.to_vec();
        listed.sort_unstable();
        listed.dedup();
        words.sort_unstable();
        assert_eq!(listed, words);
        assert_eq!(ErrorEntry::find(502, "tooLarge").map(|entry| entry.retryable), Some(false));
        assert_eq!(ErrorEntry::find(418, "tooLarge"), None);
    }
}
