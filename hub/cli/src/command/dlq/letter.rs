//! One dead letter.

use seawall_hub_server::client::Ask;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::deliveries::TRIES;
use super::super::rules::request;
use super::path;
use crate::failure::{Done, Failure, REFUSED};
use crate::output::{Column, cell, note};
use crate::talk::{Data, Session, Why};

const FIRST: &[&str] = &[
    "id",
    "standing",
    "reason",
    "status",
    "error",
    "deadAt",
    "service",
    "rule",
    "ruleVersion",
    "ruleVersionToday",
    "event",
    "group",
    "note",
    "replayed",
    "operation",
];

const RELATED: &[Column] = &[
    ("ID", "id"),
    ("STATE", "state"),
    ("SERVICE", "service"),
    ("RULE", "rule"),
    ("REPLAY OF", "replayOf"),
    ("ACCEPTED", "acceptedAt"),
];

/// What has a place of its own below the fields.
const BELOW: [&str; 6] = ["attempts", "request", "rawEvent", "related", "curl", "diff"];

/// Everything that is known of it; only its event, if `raw`.
pub(super) async fn show(session: &Session, id: &str, raw: bool) -> Done {
    let mut data = session.get(path(id, "")).await?;
    if raw {
        return session.out.content(&event(&data)?);
    }
    if session.out.json {
        return session.out.line(&data.text);
    }
    let taken = data.value.as_object_mut().map(|fields| BELOW.map(|name| fields.remove(name)));
    let [tries, sent, _, related, _, diff] =
        taken.unwrap_or_default().map(|part| part.filter(|part| !part.is_null()).unwrap_or_default());
    session.out.describe(&data.value, FIRST)?;
    let rows = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    session.out.section("Tries", TRIES, &rows(&tries))?;
    for (number, one) in rows(&tries).iter().enumerate() {
        session.out.text(&attempt(number + 1, one))?;
    }
    if !sent.is_null() {
        session.out.text(&format!("\nRequest\n{}", request(&sent)))?;
    }
    if !rows(&diff).is_empty() {
        session.out.text(&format!("\nOther than what it replays\n{}", differences(&diff)))?;
    }
    session.out.section("Related", RELATED, &rows(&related))?;
    let event: Value = serde_json::from_str(&event(&data)?).unwrap_or_default();
    session.out.text(&format!("\nEvent\n{event:#}"))
}

/// The event as the hub has it: a number that no program here can hold is still the same number.
fn event(data: &Data) -> Result<String, Failure> {
    let fields: std::collections::HashMap<String, Box<RawValue>> =
        serde_json::from_str(&data.text).unwrap_or_default();
    let event = fields.get("rawEvent").map(|event| event.get().to_owned());
    event.ok_or_else(|| Failure::new(REFUSED, "the hub does not have its event any more"))
}

/// What went out, and what came back.
fn attempt(number: usize, tried: &Value) -> String {
    let mut out = format!("\nTry {number}\n");
    let mut add = |mark: char, headers: &Value| {
        for (name, value) in headers.as_object().into_iter().flatten() {
            out.push_str(&format!("{mark} {name}: {}\n", value.as_str().unwrap_or_default()));
        }
    };
    match tried["sent"]["line"].as_str() {
        Some(line) => {
            add('>', &json!({"": line}));
            add('>', &tried["sent"]["headers"]);
        }
        None => add('>', &json!({"": "nothing was sent"})),
    }
    if !tried["status"].is_null() {
        add('<', &json!({"": tried["status"].to_string()}));
        add('<', &tried["answerHeaders"]);
    }
    let mut out = out.replace("> : ", "> ").replace("< : ", "< ");
    if let Some(answer) = tried["answer"].as_str().filter(|answer| !answer.is_empty()) {
        out.push_str(answer);
    }
    out
}

/// Where two requests differ, a line each.
pub(super) fn differences(diff: &Value) -> String {
    let mut out = String::new();
    for one in diff.as_array().into_iter().flatten() {
        let place = cell(&one["place"]);
        for (mark, side) in [('-', "was"), ('+', "now")] {
            if let Some(text) = one[side].as_str() {
                out.push_str(&format!("{mark} {place}: {text}\n"));
            }
        }
    }
    out
}

/// Its request as a line for a shell.
pub(super) async fn curl(session: &Session, id: &str) -> Done {
    let data = session.get(path(id, "")).await?;
    let Some(line) = data.value["curl"].as_str() else {
        return Err(Failure::new(REFUSED, "no request could be made of it, or its service is gone")
            .and(format!("`seawall dlq show {id}` says why")));
    };
    if session.out.json {
        return session.out.line(&json!({"curl": line}).to_string());
    }
    if data.value["serviceHasAuth"] == true {
        note("the hub adds credentials on the way out; put your own into CREDENTIALS");
    }
    session.out.content(line)
}

/// What is done to one, at once.
pub(super) async fn put(session: &Session, id: &str, verb: &str, why: &Why) -> Done {
    let ask = match verb {
        "delete" => Ask::delete(path(id, "")),
        verb => Ask::post(path(id, &format!(":{verb}"))).json("{}"),
    };
    let data = session.ask(why.of(ask)).await?;
    session.told(&data, |data| {
        let (id, standing) = (cell(&data["id"]), cell(&data["standing"]));
        match data["purgeAt"].as_str() {
            Some(at) => {
                format!("dead letter {id} is {standing}, and goes for good at {at}\nseawall dlq restore {id}")
            }
            None => format!("dead letter {id} is {standing}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a try is shown as it was on the wire, and a difference with what was and what is.
    #[test]
    fn hub_10_a_try_is_shown_as_it_was_on_the_wire() {
        let tried = json!({
            "status": 422, "answer": "no: such", "answerHeaders": {"x": "y"},
            "sent": {"line": "POST http://peer/a", "headers": {"seawall-try": "1"}},
        });
        let shown = "\nTry 2\n> POST http://peer/a\n> seawall-try: 1\n< 422\n< x: y\nno: such";
        assert_eq!(attempt(2, &tried), shown);
        assert_eq!(attempt(1, &json!({"status": null})), "\nTry 1\n> nothing was sent\n");
        let diff = json!([{"place": "path", "was": "/a", "now": "/b"}, {"place": "headers.x", "was": null, "now": "1"}]);
        assert_eq!(differences(&diff), "- path: /a\n+ path: /b\n+ headers.x: 1\n");
    }
}
