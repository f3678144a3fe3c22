//! Dead letters that have failed alike.

use clap::Args;
use seawall_hub_server::client::{Ask, path_part};
use serde_json::{Value, json};

use super::DEAD_LETTERS;
use crate::failure::Done;
use crate::lists::{List, Pages};
use crate::output::{Column, cell};
use crate::talk::{Session, Why};

const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";

const COLUMNS: &[Column] = &[
    ("GROUP", "fingerprint"),
    ("OPEN", "counts.open"),
    ("STATE", "state"),
    ("REASON", "reason"),
    ("STATUS", "status"),
    ("MESSAGE", "message"),
    ("SERVICE", "service"),
    ("RULE", "rule"),
    ("LAST", "lastAt"),
];

const FIRST: &[&str] = &[
    "fingerprint",
    "state",
    "service",
    "rule",
    "reason",
    "status",
    "message",
    "note",
    "firstAt",
    "lastAt",
    "reopened",
    "counts",
];

const SAMPLE: &[&str] = &["id", "standing", "event", "deadAt", "reason", "status", "error"];

/// Which groups.
#[derive(Args)]
pub(crate) struct Which {
    /// For this service.
    #[arg(long)]
    service: Option<String>,
    /// Because of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// In this state; several with commas.
    #[arg(long, value_delimiter = ',', value_parser = ["open", "acknowledged", "resolved"])]
    state: Vec<String>,
}

/// What is said about a group.
#[derive(Args)]
pub(crate) struct Said {
    /// Its fingerprint: `grp_…`.
    #[arg(value_name = "FP")]
    fingerprint: String,
    /// Written down beside it, in place of what stands there.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    why: Why,
}

pub(super) fn path(fingerprint: &str, verb: &str) -> String {
    format!("{GROUPS}/{}{verb}", path_part(fingerprint))
}

pub(super) async fn list(session: &Session, which: &Which, pages: &Pages) -> Done {
    let state = which.state.join(",");
    let query = &[
        ("service", which.service.as_deref()),
        ("rule", which.rule.as_deref()),
        ("state", Some(&*state).filter(|all| !all.is_empty())),
    ];
    let list = List { path: GROUPS, query, name: "deadLetterGroups", columns: COLUMNS };
    session.list(&list, pages).await
}

pub(super) async fn show(session: &Session, fingerprint: &str) -> Done {
    let mut data = session.get(path(fingerprint, "")).await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let mut sample = None;
    if let Some(fields) = data.value.as_object_mut() {
        fields.remove("sample");
        sample = fields.remove("sampleLetter").filter(|sample| !sample.is_null());
    }
    session.out.describe(&data.value, FIRST)?;
    let Some(Value::Object(sample)) = sample else { return Ok(()) };
    session.out.text("\nSample")?;
    let short = sample.iter().filter(|(name, _)| SAMPLE.contains(&name.as_str()));
    let short: Value = short.map(|(name, value)| (name.clone(), value.clone())).collect();
    session.out.describe(&short, SAMPLE)?;
    session.out.text(&format!("\nseawall dlq show {}", cell(&short["id"])))
}

/// `:acknowledge`, `:resolve` and `:reopen`.
pub(super) async fn settle(session: &Session, said: &Said, verb: &str) -> Done {
    let mut body = json!({});
    if let Some(note) = &said.note {
        body["note"] = json!(note);
    }
    let ask = Ask::post(path(&said.fingerprint, &format!(":{verb}"))).json(body.to_string());
    let data = session.ask(said.why.of(ask)).await?;
    session.told(&data, |data| format!("group {} is {}", cell(&data["fingerprint"]), cell(&data["state"])))
}

/// Of a group or of a dead letter, whichever the name is of. An empty one takes away what stands there.
pub(super) async fn note(session: &Session, name: &str, text: &str, why: &Why) -> Done {
    let path =
        if name.starts_with("grp_") { path(name, "") } else { format!("{DEAD_LETTERS}/{}", path_part(name)) };
    let note = Some(text).filter(|text| !text.trim().is_empty());
    let data = session.ask(why.of(Ask::patch(path).json(json!({"note": note}).to_string()))).await?;
    session.told(&data, |_| match note {
        Some(_) => format!("it is written down beside {name}"),
        None => format!("nothing is written down beside {name} any more"),
    })
}
