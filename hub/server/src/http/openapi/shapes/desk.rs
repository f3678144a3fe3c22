//! What is shown of the dead letter desk.

use seawall_hub_core::domain::letter::{GroupState, Standing};
use seawall_hub_core::domain::operation::Run;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, need, pattern, shape, shown, switch, text, time, words,
};
use super::Named;
use super::bridge::page;
use super::common::{delivery_id, slug};
use super::deliveries::{attempts, delivery, reasons, states};
use super::services::Concat as _;

pub(super) fn shapes() -> Vec<Named> {
    let letter = || [delivery(), dead()].concat_fields();
    let search = shown(vec![need("unindexed", count(0))]);
    let found = shown(vec![
        need("deadLetters", list(shape("DeadLetter"))),
        need("nextPageToken", text().says("`page_token` of the next page; empty if this is the last")),
        may("search", search.says("With `q`: so many can't be found by their words yet")),
    ]);
    vec![
        ("DeadLetter", shown(letter())),
        ("DeadLetterWithEvidence", shown([letter(), evidence()].concat_fields())),
        ("DeadLetterPage", found),
        ("DeadLetterDeleted", shown(deleted())),
        ("DeadLetterPurged", shown(vec![need("id", delivery_id()), need("purged", switch())])),
        ("Replayed", shown(vec![need("delivery", delivery_id()), need("replayOf", delivery_id())])),
        ("Difference", difference()),
        ("Edited", edited()),
        ("Preview", preview()),
        ("DeadLetterGroup", shown(group())),
        ("DeadLetterGroupWithSample", shown([group(), vec![sample()]].concat_fields())),
        ("DeadLetterGroupPage", page("deadLetterGroups", shape("DeadLetterGroup"))),
        ("Operation", operation()),
        ("OperationPage", page("operations", shape("Operation"))),
    ]
}

/// Where a dead letter stands.
pub(super) fn standings() -> Schema {
    words(&Standing::ALL.map(Standing::word))
}

/// Where a group stands.
fn group_states() -> Schema {
    words(&GroupState::ALL.map(GroupState::word))
}

pub(in super::super) fn fingerprint() -> Schema {
    pattern("^grp_[0-9a-f]{16}$")
}

pub(in super::super) fn operation_id() -> Schema {
    pattern("^op_[0-9a-f]{32}$")
}

fn dead() -> Vec<Field> {
    let replayed = shown(vec![need("as", delivery_id()), need("state", states()), need("at", time())]);
    vec![
        need("deadAt", time()),
        need("status", between(100, 999).or_null().says("What the peer answered last")),
        need("error", text().or_null()),
        need("replayed", replayed.or_null().says("The newest replay of it")),
        need("standing", standings().says("Where it stands on the desk; `state` is the delivery's")),
        need("group", fingerprint().says("Those that have failed alike")),
        need("source", text().says("Where its event came from")),
        need("note", text().or_null()),
        need("operation", operation_id().or_null().says("The work on many that has replayed it last")),
        need("edited", switch().says("Whether its newest replay was changed by somebody")),
        need("deletedAt", time().or_null()),
        need("purgeAt", time().or_null().says("When it goes for good, if it was deleted; null for never")),
    ]
}

fn evidence() -> Vec<Field> {
    vec![
        need("rawEvent", any().says("The event as it came")),
        need("request", shape("Request").or_null().says("What was to be sent")),
        attempts(),
        need("ruleVersionToday", count(1).or_null().says("Null if the rule is gone")),
        need("trace", text().or_null()),
        need("related", list(shape("Delivery")).says("Others of the same event, the newest first")),
        need("curl", text().or_null().says("The request for a shell, without credentials")),
        need(
            "serviceHasAuth",
            switch().or_null().says("Whether the hub adds credentials; null if it is gone"),
        ),
        need(
            "diff",
            list(shape("Difference")).or_null().says("How it differs from what it replays, if it does"),
        ),
    ]
}

fn deleted() -> Vec<Field> {
    vec![
        need("id", delivery_id()),
        need("deleted", switch()),
        need("standing", standings()),
        need("purgeAt", time().or_null().says("Until then it can be restored; null for always")),
    ]
}

fn difference() -> Schema {
    shown(vec![
        need("place", text().says("`method`, `path`, `headers.x-order`, `body.data.id`")),
        need("was", text().or_null()),
        need("now", text().or_null()),
    ])
}

fn edited() -> Schema {
    shown(vec![
        need("delivery", delivery_id().or_null().says("The new one; null if somebody only wanted to see")),
        need("replayOf", delivery_id()),
        need("request", shape("Request").says("What is sent")),
        need("diff", list(shape("Difference"))),
    ])
}

fn preview() -> Schema {
    shown(vec![
        need("dryRun", switch()),
        need("count", count(0).says("So many would be taken")),
        need("countIsExact", switch().says("False if there are more than were counted")),
        need("unindexed", count(0).says("With `q`: so many can't be found by their words yet")),
        need("sample", list(shape("DeadLetter")).says("The newest of them")),
    ])
}

fn group() -> Vec<Field> {
    let counts = shown(vec![
        need("open", count(0)),
        need("replaying", count(0)),
        need("delivered", count(0)),
        need("failedAgain", count(0)),
        need("parked", count(0)),
        need("deleted", count(0)),
    ]);
    vec![
        need("fingerprint", fingerprint()),
        need("service", slug()),
        need("rule", slug()),
        need("reason", reasons()),
        need("status", between(100, 999).or_null()),
        need("message", text().says("What was said, without what is different each time")),
        need("state", group_states()),
        need("note", text().or_null()),
        need("firstAt", time()),
        need("lastAt", time()),
        need("reopened", count(0).says("So often one more failed after it was resolved")),
        need("counts", counts.says("By `standing`")),
        need("sample", delivery_id().or_null().says("The newest that is open, or else the newest")),
    ]
}

fn sample() -> Field {
    need("sampleLetter", shape("DeadLetter").or_null())
}

fn operation() -> Schema {
    let plan = shown(vec![
        need("mode", words(&["render", "same"])),
        need("ratePerSecond", count(1)),
        need("canary", list(count(1)).says("So many first, then so many more, then the rest")),
    ]);
    let progress = shown(vec![
        need("total", count(0).says("So many matched when it began")),
        need("begun", count(0)),
        need("skipped", count(0).says("Left as they were; `why` has the first of them")),
        need("tried", count(0).says("Replays whose first try has ended")),
        need("faltered", count(0).says("Replays whose first try has failed")),
        need("delivered", count(0)),
        need("failed", count(0)),
        need("underWay", count(0)),
    ]);
    shown(vec![
        need("id", operation_id()),
        need("task", words(&["replay", "delete", "restore", "park", "unpark", "purge"])),
        need("state", words(&Run::ALL.map(Run::word))),
        need("why", text().or_null().says("Why it was stopped, or why some were skipped")),
        need(
            "failedDelivery",
            delivery_id().or_null().says("The delivery whose failure has stopped it, or the dead letter that no request could be made of"),
        ),
        need("waitsFor", text().or_null()),
        need("plan", plan.or_null().says("Of a replay")),
        need("filter", shape("DeadLetterFilter").says("Which, under the names by which it was asked for")),
        need("max", count(1).or_null()),
        need("percent", between(0, 100)),
        need("progress", progress),
        need("who", text()),
        need("reason", text().or_null()),
        need("beganAt", time()),
        need("changedAt", time()),
        need("endedAt", time().or_null()),
    ])
}
