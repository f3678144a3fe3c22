//! `seawall alerts`.

use clap::{Args, Subcommand, ValueEnum};
use seawall_hub_server::client::{Ask, path_part};
use serde_json::{Map, Value};

use super::resource::Resource;
use crate::failure::{Done, Failure, REFUSED};
use crate::input;
use crate::lists::{List, Pages};
use crate::output::Column;
use crate::talk::{Session, Why, because};

const ALERTS: &str = "/api/v1/ops/alerts";

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("STATE", "state"),
    ("SEVERITY", "severity"),
    ("RULE", "rule"),
    ("SERVICE", "service"),
    ("OPENED", "openedAt"),
    ("RESOLVED", "resolvedAt"),
    ("SEEN BY", "acknowledged.by"),
    ("WHAT", "summary"),
];
const NOTICES: &[Column] = &[
    ("CHANNEL", "channel"),
    ("ABOUT", "about"),
    ("STATE", "state"),
    ("TRIES", "tries"),
    ("SENT", "sentAt"),
    ("NEXT TRY", "nextTryAt"),
    ("ERROR", "error"),
];

const RULES: Resource = Resource {
    path: "/api/v1/ops/alertRules",
    noun: "alert rule",
    columns: &[
        ("NAME", "name"),
        ("KIND", "kind"),
        ("ENABLED", "enabled"),
        ("SEVERITY", "severity"),
        ("FOR", "for"),
        ("RESOLVE AFTER", "resolveAfter"),
        ("CHANNELS", "channels"),
        ("MUTED UNTIL", "muted.until"),
    ],
    first: &["name", "kind", "enabled", "severity", "for", "resolveAfter", "services", "channels", "muted"],
};

const CHANNELS: Resource = Resource {
    path: "/api/v1/ops/alertChannels",
    noun: "channel",
    columns: &[("NAME", "name"), ("TYPE", "type"), ("URL", "url"), ("HOST", "host"), ("TO", "to")],
    first: &["name", "type", "url", "host", "port", "tls", "from", "to"],
};

/// Which incidents.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum State {
    /// What is wrong now.
    Open,
    /// What was.
    Resolved,
}

/// How bad.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Severity {
    /// Somebody should look today.
    Warning,
    /// Somebody should look now.
    Critical,
}

#[derive(Args)]
pub(crate) struct Filter {
    #[arg(long)]
    state: Option<State>,
    #[arg(long)]
    severity: Option<Severity>,
    /// About this service.
    #[arg(long)]
    service: Option<String>,
    /// By this rule.
    #[arg(long)]
    rule: Option<String>,
}

#[derive(Args)]
pub(crate) struct Quiet {
    /// For how long, like `2h`.
    #[arg(long = "for", value_name = "TIME", required_unless_present = "until")]
    lasts: Option<String>,
    /// Until when, like `2026-11-15T14:00:00Z`.
    #[arg(long, value_name = "TIME", conflicts_with = "lasts")]
    until: Option<String>,
    /// Why: the next one on duty will ask.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Incidents, the newest first.
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        pages: Pages,
    },
    /// One incident, with who was told.
    Show { id: String },
    /// Says that you have seen it.
    Ack {
        id: String,
        #[command(flatten)]
        why: Why,
    },
    /// Nobody is told about it for a while.
    Mute {
        id: String,
        #[command(flatten)]
        mute: Quiet,
    },
    /// People are told about it again.
    Unmute {
        id: String,
        #[command(flatten)]
        why: Why,
    },
    /// What is bad, for how long, and who is told.
    #[command(subcommand)]
    Rules(RuleVerb),
    /// Where messages go.
    #[command(subcommand)]
    Channels(ChannelVerb),
}

#[derive(Subcommand)]
pub(crate) enum RuleVerb {
    /// All rules.
    List,
    /// One rule.
    Show { name: String },
    /// Changes a rule, or makes one: what is not in the file is as it comes with the hub.
    Put {
        name: String,
        /// A JSON file, or `-` for stdin.
        #[arg(value_name = "FILE")]
        file: String,
        #[command(flatten)]
        why: Why,
    },
    /// Puts a rule to work.
    Enable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Takes a rule out of work; its incidents are resolved.
    Disable {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Nobody is told by it for a while.
    Mute {
        name: String,
        #[command(flatten)]
        mute: Quiet,
    },
    /// People are told by it again.
    Unmute {
        name: String,
        #[command(flatten)]
        why: Why,
    },
    /// Deletes a rule; one that came with the hub is as it came.
    Delete {
        name: String,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Subcommand)]
pub(crate) enum ChannelVerb {
    /// All channels.
    List,
    /// One channel, without what is secret.
    Show { name: String },
    /// Makes a channel, or changes one.
    Put {
        name: String,
        /// A JSON file, or `-` for stdin.
        #[arg(value_name = "FILE")]
        file: String,
        #[command(flatten)]
        why: Why,
    },
    /// Sends a sample, and says what came of it.
    Test { name: String },
    /// Deletes a channel.
    Delete {
        name: String,
        #[command(flatten)]
        why: Why,
    },
}

fn path(id: &str, verb: &str) -> String {
    format!("{ALERTS}/{}{verb}", path_part(id))
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List { filter, pages } => {
                let state = filter.state.map(|state| match state {
                    State::Open => "open",
                    State::Resolved => "resolved",
                });
                let severity = filter.severity.map(|severity| match severity {
                    Severity::Warning => "warning",
                    Severity::Critical => "critical",
                });
                let query = [
                    ("state", state),
                    ("severity", severity),
                    ("service", filter.service.as_deref()),
                    ("rule", filter.rule.as_deref()),
                ];
                let list = List { path: ALERTS, query: &query, name: "alerts", columns: COLUMNS };
                session.list(&list, &pages).await
            }
            Verb::Show { id } => show(session, &id).await,
            Verb::Ack { id, why } => {
                let mut body = Map::new();
                body.extend(why.reason.clone().map(|reason| ("reason".to_owned(), reason.into())));
                let ask = Ask::post(path(&id, ":acknowledge")).json(Value::from(body).to_string());
                told(session, why.of(ask), "is acknowledged").await
            }
            Verb::Mute { id, mute } => told(session, mute.of(path(&id, ":mute")), "is muted").await,
            Verb::Unmute { id, why } => {
                told(session, why.of(Ask::post(path(&id, ":unmute"))), "is not muted").await
            }
            Verb::Rules(verb) => verb.run(session).await,
            Verb::Channels(verb) => verb.run(session).await,
        }
    }
}

impl Quiet {
    fn of(&self, path: String) -> Ask {
        let mut body = Map::new();
        body.insert("reason".into(), self.reason.clone().into());
        body.extend(self.lasts.clone().map(|lasts| ("for".to_owned(), lasts.into())));
        body.extend(self.until.clone().map(|until| ("until".to_owned(), until.into())));
        because(Ask::post(path).json(Value::from(body).to_string()), Some(&self.reason))
    }
}

async fn told(session: &Session, ask: Ask, done: &str) -> Done {
    let data = session.ask(ask).await?;
    session.told(&data, |data| {
        let until =
            data["muted"]["until"].as_str().map_or_else(String::new, |until| format!(" until {until}"));
        format!("incident {} {done}{until}", data["id"].as_str().unwrap_or_default())
    })
}

async fn show(session: &Session, id: &str) -> Done {
    let mut data = session.get(path(id, "")).await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let notices =
        data.value.as_object_mut().and_then(|fields| fields.remove("notifications")).unwrap_or_default();
    session.out.describe(
        &data.value,
        &["id", "state", "severity", "summary", "rule", "service", "openedAt", "link"],
    )?;
    session.out.section("Who was told", NOTICES, notices.as_array().map_or(&[], Vec::as_slice))
}

impl RuleVerb {
    async fn run(self, session: &Session) -> Done {
        match self {
            RuleVerb::List => RULES.list(session).await,
            RuleVerb::Show { name } => RULES.show(session, &name).await,
            RuleVerb::Put { name, file, why } => {
                RULES.write(session, "PUT", &name, input::json_file(&file)?, &why).await
            }
            RuleVerb::Enable { name, why } => {
                RULES.write(session, "PATCH", &name, r#"{"enabled":true}"#.into(), &why).await
            }
            RuleVerb::Disable { name, why } => {
                RULES.write(session, "PATCH", &name, r#"{"enabled":false}"#.into(), &why).await
            }
            RuleVerb::Mute { name, mute } => {
                let data = session.ask(mute.of(RULES.at(&name, ":mute"))).await?;
                let until = |data: &Value| data["muted"]["until"].as_str().unwrap_or_default().to_owned();
                session.told(&data, |data| format!("alert rule `{name}` is muted until {}", until(data)))
            }
            RuleVerb::Unmute { name, why } => {
                let data = session.ask(why.of(Ask::post(RULES.at(&name, ":unmute")))).await?;
                session.told(&data, |_| format!("alert rule `{name}` is not muted"))
            }
            RuleVerb::Delete { name, why } => {
                let data = session.ask(why.of(Ask::delete(RULES.at(&name, "")))).await?;
                session.told(&data, |data| {
                    let word = if data["reset"] == true { "as it came" } else { "deleted" };
                    format!("alert rule `{name}` is {word}")
                })
            }
        }
    }
}

impl ChannelVerb {
    async fn run(self, session: &Session) -> Done {
        match self {
            ChannelVerb::List => CHANNELS.list(session).await,
            ChannelVerb::Show { name } => CHANNELS.show(session, &name).await,
            ChannelVerb::Put { name, file, why } => {
                CHANNELS.write(session, "PUT", &name, input::json_file(&file)?, &why).await
            }
            ChannelVerb::Test { name } => test(session, &name).await,
            ChannelVerb::Delete { name, why } => CHANNELS.delete(session, &name, None, &why).await,
        }
    }
}

/// A sample that did not arrive is a failure, for scripts too.
async fn test(session: &Session, name: &str) -> Done {
    let data = session.ask(Ask::post(CHANNELS.at(name, ":test"))).await?;
    let said = data.value["said"].as_str().unwrap_or_default();
    if data.value["sent"] == true {
        return session.told(&data, |_| format!("a sample went to channel `{name}`: {said}"));
    }
    if session.out.json {
        session.out.line(&data.text)?;
    }
    Err(Failure::new(REFUSED, format!("the sample did not get to channel `{name}`: {said}")))
}
