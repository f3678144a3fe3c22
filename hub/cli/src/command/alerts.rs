//! `seawall alerts`.

use clap::{Args, Subcommand, ValueEnum};
use seawall_client::api::{
    Alert, AlertChannel, AlertQuery, AlertRule, AlertState, ChannelSettings, MuteInput, Name, Notification,
    Reason, Severity,
};
use seawall_client::{ApiCall, RawJson};

use super::resource::{self, ChangeArgs, NamedPutArgs, Resource};
use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::lists::Pages;
use crate::output::{Column, cell};

const COLUMNS: &[Column<Alert>] = &[
    ("ID", |alert| cell(&alert.id)),
    ("STATE", |alert| cell(&alert.state)),
    ("SEVERITY", |alert| cell(&alert.severity)),
    ("RULE", |alert| cell(&alert.rule)),
    ("SERVICE", |alert| cell(&alert.service)),
    ("OPENED", |alert| cell(&alert.opened_at)),
    ("RESOLVED", |alert| cell(&alert.resolved_at)),
    ("ACKNOWLEDGED BY", |alert| cell(alert.acknowledged.as_ref().map_or("", |by| &by.by))),
    ("SUMMARY", |alert| cell(&alert.summary)),
];
const NOTIFICATIONS: &[Column<Notification>] = &[
    ("CHANNEL", |notification| cell(&notification.channel)),
    ("EVENT", |notification| cell(&notification.about)),
    ("STATE", |notification| cell(&notification.state)),
    ("ATTEMPTS", |notification| cell(&notification.tries)),
    ("SENT", |notification| cell(&notification.sent_at)),
    ("NEXT ATTEMPT", |notification| cell(&notification.next_try_at)),
    ("ERROR", |notification| cell(&notification.error)),
];

impl Resource for AlertRule {
    const NOUN: &'static str = "alert rule";

    const COLUMNS: &'static [Column<AlertRule>] = &[
        ("NAME", |rule| cell(&rule.spec.name)),
        ("KIND", |rule| cell(&rule.spec.kind)),
        ("ENABLED", |rule| cell(&rule.spec.enabled)),
        ("SEVERITY", |rule| cell(&rule.spec.severity)),
        ("FOR", |rule| cell(&rule.spec.r#for)),
        ("RESOLVE AFTER", |rule| cell(&rule.spec.resolve_after)),
        ("CHANNELS", |rule| cell(&rule.spec.channels)),
        ("MUTED UNTIL", |rule| cell(&rule.spec.muted.as_ref().and_then(|muted| muted.until.clone()))),
    ];

    const FIRST: &'static [&'static str] =
        &["name", "kind", "enabled", "severity", "for", "resolveAfter", "services", "channels", "muted"];

    fn name(&self) -> &Name {
        &self.spec.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Resource for AlertChannel {
    const NOUN: &'static str = "channel";

    const COLUMNS: &'static [Column<AlertChannel>] = &[
        ("NAME", |channel| cell(&channel.name)),
        ("TYPE", |channel| cell(channel.settings.as_ref().map_or("", ChannelSettings::r#type))),
        ("URL", |channel| match &channel.settings {
            Some(ChannelSettings::Webhook { url, .. }) => cell(url),
            _ => cell(""),
        }),
        ("HOST", |channel| match &channel.settings {
            Some(ChannelSettings::Email { host, .. }) => cell(host),
            _ => cell(""),
        }),
        ("TO", |channel| match &channel.settings {
            Some(ChannelSettings::Email { to, .. }) => cell(to),
            _ => cell(""),
        }),
    ];

    const FIRST: &'static [&'static str] = &["name", "type", "url", "host", "port", "tls", "from", "to"];

    fn name(&self) -> &Name {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// The state of an incident.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum IncidentStateArg {
    /// Open incidents.
    Open,
    /// Resolved incidents.
    Resolved,
}

/// The severity of an incident.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SeverityArg {
    /// Needs attention today.
    Warning,
    /// Needs attention now.
    Critical,
}

#[derive(Args)]
pub(crate) struct IncidentFilterArgs {
    /// Only incidents in this state.
    #[arg(long)]
    state: Option<IncidentStateArg>,
    /// Only incidents of this severity.
    #[arg(long)]
    severity: Option<SeverityArg>,
    /// Only incidents of this service.
    #[arg(long)]
    service: Option<String>,
    /// Only incidents of this alert rule.
    #[arg(long)]
    rule: Option<String>,
}

#[derive(Args)]
pub(crate) struct MuteArgs {
    /// Duration, such as `2h`.
    #[arg(long = "for", value_name = "TIME", required_unless_present = "until")]
    lasts: Option<String>,
    /// End time, such as `2026-11-15T14:00:00Z`.
    #[arg(long, value_name = "TIME", conflicts_with = "lasts")]
    until: Option<String>,
    /// Reason, visible to other operators and recorded in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List incidents, newest first.
    List {
        #[command(flatten)]
        filter: IncidentFilterArgs,
        #[command(flatten)]
        pages: Pages,
    },
    /// Show an incident with its notifications.
    Show { id: String },
    /// Acknowledge an incident.
    Ack {
        id: String,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// Mute an incident for a while.
    Mute {
        id: String,
        #[command(flatten)]
        mute: MuteArgs,
    },
    /// Unmute an incident.
    Unmute {
        id: String,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// Manage alert rules.
    #[command(subcommand)]
    Rules(RuleVerb),
    /// Manage notification channels.
    #[command(subcommand)]
    Channels(ChannelVerb),
}

#[derive(Subcommand)]
pub(crate) enum RuleVerb {
    /// List alert rules.
    List,
    /// Show an alert rule.
    Show { name: String },
    /// Create or replace an alert rule; fields that the file omits get their defaults.
    Put(NamedPutArgs),
    /// Enable an alert rule.
    Enable(ChangeArgs),
    /// Disable an alert rule and resolve its incidents.
    Disable(ChangeArgs),
    /// Mute an alert rule for a while.
    Mute {
        name: String,
        #[command(flatten)]
        mute: MuteArgs,
    },
    /// Unmute an alert rule.
    Unmute(ChangeArgs),
    /// Delete an alert rule; a built-in rule is reset to its defaults.
    Delete(ChangeArgs),
}

#[derive(Subcommand)]
pub(crate) enum ChannelVerb {
    /// List channels.
    List,
    /// Show a channel, without its secrets.
    Show { name: String },
    /// Create or replace a channel.
    Put(NamedPutArgs),
    /// Send a test message and print the result.
    Test { name: String },
    /// Delete a channel.
    Delete(ChangeArgs),
}

impl IncidentFilterArgs {
    fn query(&self) -> AlertQuery {
        AlertQuery {
            state: self.state.map(|state| match state {
                IncidentStateArg::Open => AlertState::Open,
                IncidentStateArg::Resolved => AlertState::Resolved,
            }),
            severity: self.severity.map(|severity| match severity {
                SeverityArg::Warning => Severity::Warning,
                SeverityArg::Critical => Severity::Critical,
            }),
            service: self.service.as_deref().map(Into::into),
            rule: self.rule.as_deref().map(Into::into),
            ..AlertQuery::default()
        }
    }
}

impl MuteArgs {
    fn input(&self) -> MuteInput {
        MuteInput {
            r#for: self.lasts.as_deref().map(Into::into),
            until: self.until.as_deref().map(Into::into),
            reason: self.reason.clone(),
        }
    }
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let alerts = session.hub.alerts();
        match self {
            Verb::List { filter, pages } => {
                session
                    .list(COLUMNS, &pages, |page| alerts.list(&AlertQuery { page, ..filter.query() }))
                    .await
            }
            Verb::Show { id } => show(session, &id).await,
            Verb::Ack { id, why } => {
                let reason = Reason { reason: why.reason.clone() };
                changed(session, why.of(alerts.acknowledge(&id, &reason)), "acknowledged").await
            }
            Verb::Mute { id, mute } => {
                let call = alerts.mute(&id, &mute.input()).reason(&mute.reason);
                changed(session, call, "muted").await
            }
            Verb::Unmute { id, why } => changed(session, why.of(alerts.unmute(&id)), "unmuted").await,
            Verb::Rules(verb) => verb.run(session).await,
            Verb::Channels(verb) => verb.run(session).await,
        }
    }
}

async fn changed(session: &Session, call: ApiCall<Alert>, done: &str) -> CommandResult {
    let reply = session.send(call).await?;
    session.told(&reply, |alert| {
        let until = alert.muted.as_ref().map_or_else(String::new, |muted| format!(" until {}", muted.until));
        format!("incident {} {done}{until}", alert.id)
    })
}

async fn show(session: &Session, id: &str) -> CommandResult {
    let reply = session.send(session.hub.alerts().get(id)).await?;
    let first = ["id", "state", "severity", "summary", "rule", "service", "openedAt", "link"];
    session.show_without(&reply, &first, &["notifications"])?;
    if session.out.json {
        return Ok(());
    }
    session.out.section("Notifications", NOTIFICATIONS, &reply.notifications)
}

impl RuleVerb {
    async fn run(self, session: &Session) -> CommandResult {
        let rules = session.hub.alert_rules();
        match self {
            RuleVerb::List => resource::list(session, rules.list()).await,
            RuleVerb::Show { name } => resource::show(session, rules.get(&name)).await,
            RuleVerb::Put(put) => {
                resource::put_named(session, &put, |name, file| rules.put(name, file)).await
            }
            RuleVerb::Enable(change) => enable(session, &change, true).await,
            RuleVerb::Disable(change) => enable(session, &change, false).await,
            RuleVerb::Mute { name, mute } => {
                let reply = session.send(rules.mute(&name, &mute.input()).reason(&mute.reason)).await?;
                session.told(&reply, |rule| {
                    let until = rule.spec.muted.as_ref().and_then(|muted| muted.until.as_ref());
                    format!("alert rule `{name}` muted until {}", until.map_or("", |until| until.as_str()))
                })
            }
            RuleVerb::Unmute(ChangeArgs { name, why }) => {
                let reply = session.send(why.of(rules.unmute(&name))).await?;
                session.told(&reply, |_| format!("alert rule `{name}` unmuted"))
            }
            RuleVerb::Delete(ChangeArgs { name, why }) => {
                let reply = session.send(why.of(rules.delete(&name))).await?;
                session.told(&reply, |deleted| {
                    let word = if deleted.reset { "reset to its defaults" } else { "deleted" };
                    format!("alert rule `{name}` {word}")
                })
            }
        }
    }
}

impl ChannelVerb {
    async fn run(self, session: &Session) -> CommandResult {
        let channels = session.hub.alert_channels();
        match self {
            ChannelVerb::List => resource::list(session, channels.list()).await,
            ChannelVerb::Show { name } => resource::show(session, channels.get(&name)).await,
            ChannelVerb::Put(put) => {
                resource::put_named(session, &put, |name, file| channels.put(name, file)).await
            }
            ChannelVerb::Test { name } => test(session, &name).await,
            ChannelVerb::Delete(change) => {
                resource::delete::<AlertChannel>(session, &change, |name| channels.delete(name)).await
            }
        }
    }
}

async fn enable(session: &Session, change: &ChangeArgs, enabled: bool) -> CommandResult {
    let body = RawJson(format!(r#"{{"enabled":{enabled}}}"#));
    let call = session.hub.alert_rules().patch(&change.name, body);
    resource::write(session, change.why.of(call)).await
}

/// A test message that was not delivered is an error, so that scripts notice it.
async fn test(session: &Session, name: &str) -> CommandResult {
    let reply = session.send(session.hub.alert_channels().test(name)).await?;
    let said = &reply.said;
    if reply.sent {
        return session.told(&reply, |_| format!("test message sent to channel `{name}`: {said}"));
    }
    if session.out.json {
        session.out.line(reply.text())?;
    }
    Err(CommandError::new(REFUSED, format!("the test message to channel `{name}` failed: {said}")))
}
