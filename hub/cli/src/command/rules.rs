//! `seawall rules`.

use clap::{Args, Subcommand};
use seawall_hub_server::client::Ask;
use serde_json::{Value, json};

use super::resource::{Act, Pending, Put, Resource};
use crate::failure::{Done, Failure, REFUSED};
use crate::input;
use crate::output::{Column, cell};
use crate::talk::{Session, Why};

const RULES: Resource = Resource {
    path: "/api/v1/registry/rules",
    noun: "rule",
    columns: &[
        ("NAME", "name"),
        ("EVENT TYPE", "eventType"),
        ("SERVICE", "service"),
        ("METHOD", "method"),
        ("PATH", "path"),
        ("ENABLED", "enabled"),
        ("VERSION", "version"),
    ],
    first: &[
        "name",
        "eventType",
        "filter",
        "service",
        "method",
        "path",
        "enabled",
        "note",
        "version",
        "changedAt",
    ],
};

const VERSIONS: &[Column] = &[
    ("VERSION", "version"),
    ("CHANGED", "changedAt"),
    ("EVENT TYPE", "eventType"),
    ("SERVICE", "service"),
    ("METHOD", "method"),
    ("PATH", "path"),
    ("ENABLED", "enabled"),
    ("NOTE", "note"),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// All rules.
    List,
    /// One rule.
    Show { name: String },
    /// Registers a rule, or changes one.
    Put(Put),
    /// Deletes a rule.
    Delete {
        name: String,
        /// What becomes of deliveries that still wait because of it.
        #[arg(long)]
        pending: Option<Pending>,
        #[command(flatten)]
        why: Why,
    },
    /// Puts a rule to work.
    Enable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Holds what a rule matches.
    Disable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Every version of a rule.
    Versions { name: String },
    /// Goes back to a version before.
    Rollback {
        name: String,
        version: u64,
        #[command(flatten)]
        why: Why,
    },
    /// The exact request that a rule makes of an event. Nothing is sent.
    Evaluate(Evaluate),
    /// What a rule makes of the events that came lately. Nothing is sent.
    Backtest {
        name: String,
        /// So many events, the newest first.
        #[arg(long, value_name = "N")]
        max: Option<u64>,
        /// Another rule in its place: a JSON file, or `-` for stdin.
        #[arg(long, value_name = "FILE")]
        rule_file: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Evaluate {
    /// A rule of the hub.
    #[arg(long, value_name = "NAME", required_unless_present = "rule_file", conflicts_with = "rule_file")]
    rule: Option<String>,
    /// A rule in a JSON file, or `-` for stdin.
    #[arg(long, value_name = "FILE")]
    rule_file: Option<String>,
    /// An event of the hub.
    #[arg(long, value_name = "ID", required_unless_present = "event_file", conflicts_with = "event_file")]
    event: Option<String>,
    /// An event in a JSON file, or `-` for stdin.
    #[arg(long, value_name = "FILE")]
    event_file: Option<String>,
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        let act = |verb, body, done, why| Act { verb, body, done, why };
        match self {
            Verb::List => RULES.list(session).await,
            Verb::Show { name } => RULES.show(session, &name).await,
            Verb::Put(put) => RULES.put(session, &put).await,
            Verb::Delete { name, pending, why } => RULES.delete(session, &name, pending, &why).await,
            Verb::Enable { name, why } => {
                RULES.act(session, &name, act("enable", None, "enabled", &why)).await
            }
            Verb::Disable { name, why } => {
                let body = why.reason.as_ref().map(|reason| json!({"reason": reason}));
                RULES.act(session, &name, act("disable", body, "disabled", &why)).await
            }
            Verb::Versions { name } => session.whole_list(&RULES.at(&name, "/versions"), VERSIONS).await,
            Verb::Rollback { name, version, why } => {
                let (body, done) = (json!({"version": version}), format!("as it was in version {version}"));
                let done = RULES.act(session, &name, act("rollback", Some(body), &done, &why)).await;
                let hint = format!("here that is `seawall rules versions {name}`");
                done.map_err(|failure| failure.in_options("`…/versions`", &hint))
            }
            Verb::Evaluate(evaluate) => evaluate.run(session).await,
            Verb::Backtest { name, max, rule_file } => {
                backtest(session, &name, max, rule_file.as_deref()).await
            }
        }
    }
}

impl Evaluate {
    async fn run(self, session: &Session) -> Done {
        let kept = |name: Option<String>| Value::from(name).to_string();
        let rule = match &self.rule_file {
            Some(file) => format!(r#""rule":{}"#, input::json_file(file)?),
            None => format!(r#""ruleName":{}"#, kept(self.rule)),
        };
        let event = match &self.event_file {
            Some(file) => format!(r#""event":{}"#, input::json_file(file)?),
            None => format!(r#""eventId":{}"#, kept(self.event)),
        };
        let ask = Ask::post(format!("{}:evaluate", RULES.path)).json(format!("{{{rule},{event}}}"));
        let data = session.ask(ask).await?;
        session.told(&data, told)?;
        if data.value["outcome"] == "unrenderable" { Err(Failure::silent(REFUSED)) } else { Ok(()) }
    }
}

/// What a rule makes of an event.
fn told(data: &Value) -> String {
    match data["outcome"].as_str().unwrap_or_default() {
        "request" => request(&data["request"]),
        "filtered" => format!("nothing: its filter does not take it ({})", cell(&data["reason"])),
        "otherType" => "nothing: it is for events of another type".into(),
        "unrenderable" => {
            format!(
                "no request can be made: {}: {}",
                cell(&data["field"]),
                data["reason"].as_str().unwrap_or_default()
            )
        }
        other => other.to_owned(),
    }
}

/// A request as it is on the wire.
pub(super) fn request(request: &Value) -> String {
    let url = request["url"].as_str().or(request["path"].as_str()).unwrap_or_default();
    let mut out = format!("{} {url}\n", request["method"].as_str().unwrap_or_default());
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        out.push_str(&format!("{name}: {}\n", value.as_str().unwrap_or_default()));
    }
    if let Some(body) = request["bodyText"].as_str() {
        out.push_str(&format!("\n{body}\n"));
    }
    out
}

async fn backtest(session: &Session, name: &str, max: Option<u64>, rule_file: Option<&str>) -> Done {
    let mut body: Vec<String> = max.map(|max| format!(r#""max":{max}"#)).into_iter().collect();
    if let Some(file) = rule_file {
        body.push(format!(r#""rule":{}"#, input::json_file(file)?));
    }
    let ask = Ask::post(RULES.at(name, ":backtest")).json(format!("{{{}}}", body.join(",")));
    let mut data = session.ask(ask).await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let samples = data.value["samples"].take();
    data.value.as_object_mut().and_then(|counts| counts.remove("samples"));
    session.out.describe(&data.value, &["events", "requests", "filtered", "otherType", "unrenderable"])?;
    let columns = &[
        ("EVENT", "event"),
        ("OUTCOME", "outcome"),
        ("METHOD", "request.method"),
        ("PATH", "request.path"),
        ("WHY", "reason"),
    ];
    session.out.section("Samples", columns, samples.as_array().map_or(&[], Vec::as_slice))
}
