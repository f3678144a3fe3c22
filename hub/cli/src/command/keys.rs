//! `seawall keys`.

use clap::{Subcommand, ValueEnum};
use seawall_client::Reply;
use seawall_client::api::{CreatedKey, Key, KeySpec, RotateInput, Scope};

use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::output::{Column, cell, note};

const COLUMNS: &[Column<Key>] = &[
    ("NAME", |key| cell(&key.name)),
    ("SCOPES", |key| cell(&key.scopes)),
    ("SERVICES", |key| cell(&key.services)),
    ("SOURCES", |key| cell(&key.sources)),
    ("CREATED", |key| cell(&key.made_at)),
    ("EXPIRES", |key| cell(&key.expires_at)),
    ("REVOKED", |key| cell(&key.revoked_at)),
    ("PREVIOUS UNTIL", |key| cell(&key.former_until)),
];

/// The scope of a key.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Send events.
    Ingest,
    /// Call services.
    Call,
    /// Read everything except keys and the audit log.
    Read,
    /// Pause services, replay dead letters, control circuits.
    Operate,
    /// Do everything.
    Admin,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Ingest => Scope::Ingest,
            ScopeArg::Call => Scope::Call,
            ScopeArg::Read => Scope::Read,
            ScopeArg::Operate => Scope::Operate,
            ScopeArg::Admin => Scope::Admin,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List keys, without their secrets.
    List,
    /// Create a key. It is printed only once, alone on stdout: `> FILE` makes a key file.
    Make {
        name: String,
        /// Scope of the key; repeatable.
        #[arg(long, required = true)]
        scope: Vec<ScopeArg>,
        /// Restrict the key to this service; repeatable.
        #[arg(long)]
        service: Vec<String>,
        /// Restrict the key to events from this source; repeatable.
        #[arg(long)]
        source: Vec<String>,
        /// Validity period, such as `90d` (default unlimited).
        #[arg(long, value_name = "TIME")]
        expires_in: Option<String>,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// Replace a key with a new one of the same name. It is printed only once.
    Rotate {
        name: String,
        /// Time for which the previous key stays valid, such as `10m` (default 1h).
        #[arg(long, value_name = "TIME")]
        grace: Option<String>,
        #[command(flatten)]
        why: ReasonArg,
    },
    /// Revoke a key immediately.
    Revoke {
        name: String,
        #[command(flatten)]
        why: ReasonArg,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let keys = session.hub.keys();
        match self {
            Verb::List => session.whole_list(COLUMNS, keys.list()).await,
            Verb::Make { name, scope, service, source, expires_in, why } => {
                let spec = KeySpec {
                    name: name.into(),
                    scopes: scope.into_iter().map(Scope::from).collect(),
                    services: Some(service.into_iter().map(Into::into).collect::<Vec<_>>())
                        .filter(|services| !services.is_empty()),
                    sources: Some(source).filter(|sources| !sources.is_empty()),
                    expires_in: expires_in.map(Into::into),
                };
                secret(session, &session.send(why.of(keys.create(&spec))).await?)
            }
            Verb::Rotate { name, grace, why } => {
                let input = RotateInput { grace: grace.map(Into::into) };
                secret(session, &session.send(why.of(keys.rotate(&name, &input))).await?)
            }
            Verb::Revoke { name, why } => {
                let reply = session.send(why.of(keys.revoke(&name))).await?;
                session.told(&reply, |_| format!("key `{name}` revoked"))
            }
        }
    }
}

/// Prints a key alone on stdout, so that it can be redirected to a file.
fn secret(session: &Session, created: &Reply<CreatedKey>) -> CommandResult {
    let name = created.about.name.as_str();
    if session.out.json {
        return session.out.line(created.text()).map_err(|_| lost(name));
    }
    note(&format!("key `{name}`: copy it now, it is shown only once; the hub stores only its hash"));
    if let Some(until) = &created.about.former_until {
        note(&format!("the previous key is valid until {until}"));
    }
    session.out.text(&created.key).map_err(|_| lost(name))
}

/// The key was not printed, perhaps because the reader is gone: the command must not succeed.
fn lost(name: &str) -> CommandError {
    CommandError::new(REFUSED, format!("the key `{name}` could not be printed and is lost"))
        .and(format!("`seawall keys rotate {name} --grace 0s` replaces it"))
}
