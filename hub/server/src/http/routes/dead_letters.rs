//! The routes of dead letters and their groups.

use axum::routing::{delete, get, patch, post};
use seawall_api::{
    BulkInput, DeadLetter, DeadLetterDeleted, DeadLetterGroup, DeadLetterGroupPage,
    DeadLetterGroupWithSample, DeadLetterPage, DeadLetterPurged, DeadLetterQuery, DeadLetterWithEvidence,
    EditInput, EditResult, ExportQuery, GroupQuery, GroupStateInput, NoteInput, Operation, Preview,
    PurgeInput, ReasonInput, ReplayGroupInput, ReplayInput, ReplayManyInput, ReplayResult,
};
use seawall_hub_core::domain::key::Scope;

use super::row::{DELETE, GET, ONCE, PATCH, POST, Route, route};
use crate::http::dead_letters;
use crate::http::dead_letters::{bulk, edit, groups, letters};
use crate::http::openapi::schema::text;

#[rustfmt::skip]
pub(super) fn routes() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/bridge/deadLetters", Read, "List dead letters, newest first", get(letters::list)).returns::<DeadLetterPage>(200).query::<DeadLetterQuery>().fails(&["invalid"])
            .more("Deleted dead letters are included only if `standing` names them"),
        route(GET, "/api/v1/bridge/deadLetters:export", Read, "Export dead letters with all evidence, one line of JSON each", get(dead_letters::export)).gives_plain("application/x-ndjson", text()).query::<ExportQuery>().fails(&["invalid"])
            .more("Each line is a `DeadLetterWithEvidence`, newest first. The response is streamed"),
        route(POST, "/api/v1/bridge/deadLetters:replay", Operate, "Replay dead letters in bulk, with canary stages", post(bulk::replay)).takes::<ReplayManyInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"])
            .more("Applies to open dead letters, and to parked ones only if `standing` names them. 202 with the operation, 200 for a dry run"),
        route(POST, "/api/v1/bridge/deadLetters:park", Operate, "Park dead letters in bulk", post(bulk::park)).takes::<BulkInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters:unpark", Operate, "Unpark dead letters in bulk", post(bulk::unpark)).takes::<BulkInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters:delete", Operate, "Delete dead letters in bulk; they can be restored", post(bulk::delete)).takes::<BulkInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters:restore", Operate, "Restore deleted dead letters in bulk", post(bulk::restore)).takes::<BulkInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters:purge", Admin, "Purge dead letters in bulk, permanently and with all evidence", post(bulk::purge)).takes::<PurgeInput>().returns::<Preview>(200).returns::<Operation>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]).more("A dry run without `force`"),
        route(GET, "/api/v1/bridge/deadLetters/{id}", Read, "Get a dead letter with all evidence", get(letters::get)).returns::<DeadLetterWithEvidence>(200).more("Deleted dead letters are included"),
        route(PATCH, "/api/v1/bridge/deadLetters/{id}", Operate, "Set its note", patch(letters::change)).takes::<NoteInput>().returns::<DeadLetter>(200).fails(&["invalid"]),
        route(DELETE, "/api/v1/bridge/deadLetters/{id}", Operate, "Delete it; it can be restored until it is purged", delete(letters::delete)).returns::<DeadLetterDeleted>(200).fails(&["conflict"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:replay", Operate, "Replay it as a new delivery", post(letters::replay)).may_take::<ReplayInput>().returns::<ReplayResult>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:edit", Operate, "Edit and replay it, or preview the differences", post(edit::edit)).takes::<EditInput>().returns::<EditResult>(200).returns::<EditResult>(202).with(ONCE)
            .fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:park", Operate, "Park it: bulk replays skip it", post(letters::park)).may_take::<ReasonInput>().returns::<DeadLetter>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:unpark", Operate, "Unpark it", post(letters::unpark)).may_take::<ReasonInput>().returns::<DeadLetter>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:restore", Operate, "Restore it after it was deleted", post(letters::restore)).may_take::<ReasonInput>().returns::<DeadLetter>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetters/{id}:purge", Admin, "Purge it, permanently and with all evidence", post(letters::purge)).may_take::<ReasonInput>().returns::<DeadLetterPurged>(200).fails(&["conflict", "invalid"]),
        route(GET, "/api/v1/bridge/deadLetterGroups", Read, "List groups of dead letters with the same failure", get(groups::list)).returns::<DeadLetterGroupPage>(200).query::<GroupQuery>()
            .fails(&["invalid"]).more("Sorted by the latest failure, newest first"),
        route(GET, "/api/v1/bridge/deadLetterGroups/{fingerprint}", Read, "Get a group with a sample", get(groups::get)).returns::<DeadLetterGroupWithSample>(200),
        route(PATCH, "/api/v1/bridge/deadLetterGroups/{fingerprint}", Operate, "Set its note", patch(groups::change)).takes::<NoteInput>().returns::<DeadLetterGroup>(200).fails(&["invalid"]),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:replay", Operate, "Replay the group, with canary stages", post(groups::replay)).may_take::<ReplayGroupInput>().returns::<Preview>(200)
            .returns::<Operation>(202).with(ONCE).fails(&["badKey", "conflict", "invalid"]),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:acknowledge", Operate, "Acknowledge the group", post(groups::acknowledge)).may_take::<GroupStateInput>().returns::<DeadLetterGroup>(200).fails(&["invalid"]),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:resolve", Operate, "Resolve the group; the next dead letter reopens it", post(groups::resolve)).may_take::<GroupStateInput>().returns::<DeadLetterGroup>(200).fails(&["invalid"]),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:reopen", Operate, "Reopen the group", post(groups::reopen)).may_take::<GroupStateInput>().returns::<DeadLetterGroup>(200).fails(&["invalid"]),
    ]
}
