//! Dead letters, groups and bulk operations.

use seawall_hub_core::domain::dead_letter::{GroupState, LetterState};
use seawall_hub_core::domain::operation::OperationState;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, need, pattern, shape, shown, switch, text, time, words,
};
use super::NamedSchema;
use super::bridge::page;
use super::common::{delivery_id, slug};
use super::deliveries::{attempts, delivery, reasons, states};
use super::services::Concat as _;

pub(super) fn shapes() -> Vec<NamedSchema> {
    let letter = || [delivery(), dead()].concat_fields();
    let search = shown(vec![need("unindexed", count(0))]);
    let found = shown(vec![
        need("deadLetters", list(shape("DeadLetter"))),
        need("nextPageToken", text().says("`page_token` of the next page; empty for the last page")),
        may("search", search.says("With `q`: number of dead letters that are not indexed yet")),
    ]);
    vec![
        ("DeadLetter", shown(letter())),
        ("DeadLetterWithEvidence", shown([letter(), evidence()].concat_fields())),
        ("DeadLetterPage", found),
        ("DeadLetterDeleted", shown(deleted())),
        ("DeadLetterPurged", shown(vec![need("id", delivery_id()), need("purged", switch())])),
        ("ReplayResult", shown(vec![need("delivery", delivery_id()), need("replayOf", delivery_id())])),
        ("Difference", difference()),
        ("EditResult", edited()),
        ("Preview", preview()),
        ("DeadLetterGroup", shown(group())),
        ("DeadLetterGroupWithSample", shown([group(), vec![sample()]].concat_fields())),
        ("DeadLetterGroupPage", page("deadLetterGroups", shape("DeadLetterGroup"))),
        ("Operation", operation()),
        ("OperationPage", page("operations", shape("Operation"))),
    ]
}

/// The states of a dead letter.
pub(super) fn standings() -> Schema {
    words(&LetterState::ALL.map(LetterState::word))
}

/// The states of a group.
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
        need("status", between(100, 999).or_null().says("HTTP status of the last response")),
        need("error", text().or_null()),
        need("replayed", replayed.or_null().says("Its latest replay")),
        need("standing", standings().says("State of the dead letter; `state` is that of the delivery")),
        need("group", fingerprint().says("Group of dead letters with the same failure")),
        need("source", text().says("Source of its event")),
        need("note", text().or_null()),
        need("operation", operation_id().or_null().says("Bulk operation that replayed it last")),
        need("edited", switch().says("True if its latest replay was edited")),
        need("deletedAt", time().or_null()),
        need(
            "purgeAt",
            time().or_null().says("Time at which it is purged, if it was deleted; null for never"),
        ),
    ]
}

fn evidence() -> Vec<Field> {
    vec![
        need("rawEvent", any().says("Original event")),
        need("request", shape("Request").or_null().says("Rendered request")),
        attempts(),
        need(
            "ruleVersionToday",
            count(1).or_null().says("Current version of the rule; null if it was deleted"),
        ),
        need("trace", text().or_null()),
        need("related", list(shape("Delivery")).says("Other deliveries of the same event, newest first")),
        need("curl", text().or_null().says("The request as a curl command, without credentials")),
        need(
            "serviceHasAuth",
            switch().or_null().says("True if the hub adds credentials; null if the service was deleted"),
        ),
        need("diff", list(shape("Difference")).or_null().says("Changes before replay, if there are any")),
    ]
}

fn deleted() -> Vec<Field> {
    vec![
        need("id", delivery_id()),
        need("deleted", switch()),
        need("standing", standings()),
        need("purgeAt", time().or_null().says("It can be restored until this time; null for always")),
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
        need("delivery", delivery_id().or_null().says("Id of the new delivery; null for a dry run")),
        need("replayOf", delivery_id()),
        need("request", shape("Request").says("The request with the changes")),
        need("diff", list(shape("Difference"))),
    ])
}

fn preview() -> Schema {
    shown(vec![
        need("dryRun", switch()),
        need("count", count(0).says("Number of matching dead letters")),
        need("countIsExact", switch().says("False if there may be more")),
        need("unindexed", count(0).says("With `q`: number of dead letters that are not indexed yet")),
        need("sample", list(shape("DeadLetter")).says("The newest matches")),
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
        need("message", text().says("Error message without its variable parts")),
        need("state", group_states()),
        need("note", text().or_null()),
        need("firstAt", time()),
        need("lastAt", time()),
        need("reopened", count(0).says("Number of times it was reopened by a new failure")),
        need("counts", counts.says("Counts by `standing`")),
        need("sample", delivery_id().or_null().says("The newest open dead letter, or the newest")),
    ]
}

fn sample() -> Field {
    need("sampleLetter", shape("DeadLetter").or_null())
}

fn operation() -> Schema {
    let plan = shown(vec![
        need("mode", words(&["render", "same"])),
        need("ratePerSecond", count(1)),
        need("canary", list(count(1)).says("Sizes of the canary stages")),
    ]);
    let progress = shown(vec![
        need("total", count(0).says("Number of matches at the start")),
        need("begun", count(0)),
        need("skipped", count(0).says("Skipped; `why` has the reason of the first")),
        need("tried", count(0).says("Replays whose first attempt has ended")),
        need("faltered", count(0).says("Replays whose first attempt has failed")),
        need("delivered", count(0)),
        need("failed", count(0)),
        need("underWay", count(0)),
    ]);
    shown(vec![
        need("id", operation_id()),
        need("task", words(&["replay", "delete", "restore", "park", "unpark", "purge"])),
        need("state", words(&OperationState::ALL.map(OperationState::word))),
        need("why", text().or_null().says("Reason for which it stopped, or some were skipped")),
        need(
            "failedDelivery",
            delivery_id()
                .or_null()
                .says("The delivery whose failure stopped it, or the dead letter that could not be rendered"),
        ),
        need("waitsFor", text().or_null()),
        need("plan", plan.or_null().says("Options of a replay")),
        need("filter", shape("DeadLetterFilter").says("Filter, as it was requested")),
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
