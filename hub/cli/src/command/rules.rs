//! `seawall rules`.

use clap::{Args, Subcommand};
use seawall_client::RawJson;
use seawall_client::api::{
    BacktestInput, BacktestSample, EvaluateInput, Evaluation, Name, Reason, Request, Rule,
};

use super::resource::{self, ChangeArgs, DeleteArgs, PutArgs, Resource};
use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::input;
use crate::output::{Column, cell};

impl Resource for Rule {
    const NOUN: &'static str = "rule";

    const COLUMNS: &'static [Column<Rule>] = &[
        ("NAME", |rule| cell(&rule.spec.name)),
        ("EVENT TYPE", |rule| cell(&rule.spec.event_type)),
        ("SERVICE", |rule| cell(&rule.spec.service)),
        ("METHOD", |rule| cell(&rule.spec.method)),
        ("PATH", |rule| cell(&rule.spec.path)),
        ("ENABLED", |rule| cell(&rule.spec.enabled)),
        ("VERSION", |rule| cell(&rule.version)),
    ];

    const FIRST: &'static [&'static str] = &[
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
    ];

    fn name(&self) -> &Name {
        &self.spec.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

const VERSIONS: &[Column<Rule>] = &[
    ("VERSION", |rule| cell(&rule.version)),
    ("CHANGED", |rule| cell(&rule.changed_at)),
    ("EVENT TYPE", |rule| cell(&rule.spec.event_type)),
    ("SERVICE", |rule| cell(&rule.spec.service)),
    ("METHOD", |rule| cell(&rule.spec.method)),
    ("PATH", |rule| cell(&rule.spec.path)),
    ("ENABLED", |rule| cell(&rule.spec.enabled)),
    ("NOTE", |rule| cell(&rule.note)),
];

const SAMPLES: &[Column<BacktestSample>] = &[
    ("EVENT", |sample| cell(sample.event.as_str())),
    ("OUTCOME", |sample| cell(sample.evaluation.outcome())),
    ("METHOD", |sample| cell(sample.evaluation.request().map_or("", |request| &request.method))),
    ("PATH", |sample| cell(sample.evaluation.request().map_or("", |request| &request.path))),
    ("REASON", |sample| cell(sample.evaluation.reason().unwrap_or_default())),
];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List rules.
    List,
    /// Show a rule.
    Show { name: String },
    /// Create or update a rule.
    Put(PutArgs),
    /// Delete a rule.
    Delete(DeleteArgs),
    /// Enable a rule and release its held deliveries.
    Enable(ChangeArgs),
    /// Disable a rule; matching events are held.
    Disable(ChangeArgs),
    /// List the versions of a rule.
    Versions { name: String },
    /// Restore an earlier version of a rule.
    Rollback {
        name: String,
        /// Version to restore.
        version: u64,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// Show the exact request that a rule renders for an event, without sending it.
    Evaluate(Evaluate),
    /// Apply a rule to recent events, without sending anything.
    Backtest {
        name: String,
        /// Maximum number of events, newest first.
        #[arg(long, value_name = "N", value_parser = input::whole::<u32>(1..=1_000))]
        max: Option<u32>,
        /// Rule to test in its place: a JSON file, or `-` for stdin.
        #[arg(long, value_name = "FILE")]
        rule_file: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Evaluate {
    /// Name of a stored rule.
    #[arg(long, value_name = "NAME", required_unless_present = "rule_file", conflicts_with = "rule_file")]
    rule: Option<String>,
    /// Rule in a JSON file, or `-` for stdin.
    #[arg(long, value_name = "FILE")]
    rule_file: Option<String>,
    /// ID of a stored event.
    #[arg(long, value_name = "ID", required_unless_present = "event_file", conflicts_with = "event_file")]
    event: Option<String>,
    /// Event in a JSON file, or `-` for stdin.
    #[arg(long, value_name = "FILE")]
    event_file: Option<String>,
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let rules = session.hub.rules();
        match self {
            Verb::List => resource::list(session, rules.list()).await,
            Verb::Show { name } => resource::show(session, rules.get(&name)).await,
            Verb::Put(put) => resource::put(session, &put, |file| rules.create(file)).await,
            Verb::Delete(args) => {
                let delete = |name: &str, pending| rules.delete(name, pending);
                resource::delete_with_pending::<Rule>(session, &args, delete).await
            }
            Verb::Enable(args) => {
                resource::change(session, &args, "enabled", |name| rules.enable(name)).await
            }
            Verb::Disable(args) => {
                let note = Reason { reason: args.why.reason.clone() };
                resource::change(session, &args, "disabled", |name| rules.disable(name, &note)).await
            }
            Verb::Versions { name } => session.whole_list(VERSIONS, rules.versions(&name)).await,
            Verb::Rollback { name, version, why } => {
                let done = format!("restored to version {version}");
                let done = resource::act(session, why.of(rules.rollback(&name, version)), &done).await;
                let hint = format!("use `seawall rules versions {name}`");
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
    async fn run(self, session: &Session) -> CommandResult {
        // A file is sent as it is, with what this version does not know.
        let named = EvaluateInput {
            rule_name: self.rule.map(Into::into),
            event_id: self.event.map(Into::into),
            ..EvaluateInput::default()
        };
        let files = [("rule", &self.rule_file), ("event", &self.event_file)];
        let body = with_files(&named, &files)?;
        let reply = session.send(session.hub.rules().evaluate(body)).await?;
        session.told(&reply, result)?;
        match *reply {
            Evaluation::Unrenderable { .. } => Err(CommandError::silent(REFUSED)),
            _ => Ok(()),
        }
    }
}

/// A JSON object, with the content of files as further fields.
fn with_files(
    object: &impl serde::Serialize,
    files: &[(&str, &Option<String>)],
) -> Result<RawJson, CommandError> {
    let mut text = serde_json::to_string(object).map_err(CommandError::of)?;
    for (name, file) in files {
        let Some(file) = file else { continue };
        let comma = if text == "{}" { "" } else { "," };
        text.truncate(text.len() - 1);
        text.push_str(&format!("{comma}\"{name}\":{}}}", input::json_file(file)?));
    }
    Ok(RawJson(text))
}

/// The result of a rule for one event.
fn result(evaluation: &Evaluation) -> String {
    match evaluation {
        Evaluation::Request { request, .. } => request_text(request),
        Evaluation::Filtered { reason } => format!("no request: filtered out ({})", cell(reason)),
        Evaluation::OtherType => "no request: the rule is for another event type".into(),
        Evaluation::Unrenderable { field, reason } => {
            format!("can't render the request: {}: {reason}", cell(field))
        }
        other => other.outcome().to_owned(),
    }
}

/// A request as sent on the wire.
pub(super) fn request_text(request: &Request) -> String {
    let mut out = format!("{} {}\n", request.method, request.url.as_ref().unwrap_or(&request.path));
    for (name, value) in &request.headers {
        out.push_str(&format!("{name}: {value}\n"));
    }
    if let Some(body) = &request.body_text {
        out.push_str(&format!("\n{body}\n"));
    }
    out
}

async fn backtest(session: &Session, name: &str, max: Option<u32>, rule_file: Option<&str>) -> CommandResult {
    let input = BacktestInput { max, rule: None };
    let body = with_files(&input, &[("rule", &rule_file.map(ToOwned::to_owned))])?;
    let reply = session.send(session.hub.rules().backtest(name, body)).await?;
    session.show_without(
        &reply,
        &["events", "requests", "filtered", "otherType", "unrenderable"],
        &["samples"],
    )?;
    if session.out.json { Ok(()) } else { session.out.section("Samples", SAMPLES, &reply.samples) }
}
