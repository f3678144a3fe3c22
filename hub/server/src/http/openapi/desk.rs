//! What the routes of the dead letter desk take and give.

use super::operations::{DELETE, GET, Operation, PAGE, PATCH, POST, op};
use super::schema::text;

const KEY: &[&str] = &["Idempotency-Key"];
const FILTER: &[&str] =
    &["service", "rule", "event", "reason", "status", "group", "standing", "since", "until", "q", "replayed"];

/// All of them.
pub(super) fn operations() -> Vec<Operation> {
    [letters(), many(), groups(), work()].into_iter().flatten().collect()
}

#[rustfmt::skip]
fn letters() -> Vec<Operation> {
    const ONE: &str = "/api/v1/bridge/deadLetters/{id}";
    let moved = |path| op(POST, path).may_take("WhyInput").gives(200, "DeadLetter").fails(&["conflict", "invalid"]);
    vec![
        op(GET, "/api/v1/bridge/deadLetters").gives(200, "DeadLetterPage").with(FILTER).with(PAGE).fails(&["invalid"])
            .more("Those that were deleted are only in it if `standing` names them"),
        op(GET, ONE).gives(200, "DeadLetterWithEvidence").more("Also one that was deleted"),
        op(PATCH, ONE).takes("NoteInput").gives(200, "DeadLetter").fails(&["invalid"]),
        op(DELETE, ONE).gives(200, "DeadLetterDeleted").fails(&["conflict"]),
        op(POST, "/api/v1/bridge/deadLetters/{id}:replay").may_take("ReplayInput").gives(202, "Replayed").with(KEY)
            .fails(&["badKey", "conflict", "invalid"]),
        op(POST, "/api/v1/bridge/deadLetters/{id}:edit").takes("EditInput").gives(200, "Edited").gives(202, "Edited").with(KEY)
            .fails(&["badKey", "conflict", "invalid"]),
        moved("/api/v1/bridge/deadLetters/{id}:park"),
        moved("/api/v1/bridge/deadLetters/{id}:unpark"),
        moved("/api/v1/bridge/deadLetters/{id}:restore"),
        op(POST, "/api/v1/bridge/deadLetters/{id}:purge").may_take("WhyInput").gives(200, "DeadLetterPurged").fails(&["conflict", "invalid"]),
    ]
}

#[rustfmt::skip]
fn many() -> Vec<Operation> {
    let begins = |path, takes| op(POST, path).takes(takes).gives(200, "Preview").gives(202, "Operation").with(KEY)
        .fails(&["badKey", "conflict", "invalid"]);
    vec![
        op(GET, "/api/v1/bridge/deadLetters:export").gives_plain("application/x-ndjson", text()).with(FILTER).with(&["max"]).fails(&["invalid"])
            .more("Each line is a `DeadLetterWithEvidence`, the newest first. It is read while it is sent"),
        begins("/api/v1/bridge/deadLetters:replay", "ReplayManyInput")
            .more("Takes what is open; what was put aside only if `standing` names it. 202 with the work that has begun, 200 for a dry run"),
        begins("/api/v1/bridge/deadLetters:park", "ManyInput"),
        begins("/api/v1/bridge/deadLetters:unpark", "ManyInput"),
        begins("/api/v1/bridge/deadLetters:delete", "ManyInput"),
        begins("/api/v1/bridge/deadLetters:restore", "ManyInput"),
        begins("/api/v1/bridge/deadLetters:purge", "PurgeInput").more("Without `force` a dry run"),
    ]
}

#[rustfmt::skip]
fn groups() -> Vec<Operation> {
    const ONE: &str = "/api/v1/bridge/deadLetterGroups/{fingerprint}";
    let settles = |path| op(POST, path).may_take("SettleInput").gives(200, "DeadLetterGroup").fails(&["invalid"]);
    vec![
        op(GET, "/api/v1/bridge/deadLetterGroups").gives(200, "DeadLetterGroupPage").with(&["service", "rule", "groupState"]).with(PAGE)
            .fails(&["invalid"]).more("Those that have failed last come first"),
        op(GET, ONE).gives(200, "DeadLetterGroupWithSample"),
        op(PATCH, ONE).takes("NoteInput").gives(200, "DeadLetterGroup").fails(&["invalid"]),
        op(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:replay").may_take("ReplayGroupInput").gives(200, "Preview")
            .gives(202, "Operation").with(KEY).fails(&["badKey", "conflict", "invalid"]),
        settles("/api/v1/bridge/deadLetterGroups/{fingerprint}:acknowledge"),
        settles("/api/v1/bridge/deadLetterGroups/{fingerprint}:resolve"),
        settles("/api/v1/bridge/deadLetterGroups/{fingerprint}:reopen"),
    ]
}

#[rustfmt::skip]
fn work() -> Vec<Operation> {
    let steers = |path| op(POST, path).may_take("WhyInput").gives(200, "Operation").fails(&["conflict", "invalid"]);
    vec![
        op(GET, "/api/v1/ops/operations").gives(200, "OperationPage").with(PAGE).fails(&["invalid"]),
        op(GET, "/api/v1/ops/operations/{id}").gives(200, "Operation"),
        steers("/api/v1/ops/operations/{id}:pause"),
        steers("/api/v1/ops/operations/{id}:resume"),
        steers("/api/v1/ops/operations/{id}:cancel"),
    ]
}
