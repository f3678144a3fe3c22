//! `seawall keys`.

use clap::{Subcommand, ValueEnum};
use seawall_hub_server::client::{Ask, path_part};
use serde_json::{Map, Value};

use crate::failure::{Done, Failure, REFUSED};
use crate::output::{Column, note};
use crate::talk::{Data, Session, Why};

const KEYS: &str = "/api/v1/registry/keys";

const COLUMNS: &[Column] = &[
    ("NAME", "name"),
    ("SCOPES", "scopes"),
    ("SERVICES", "services"),
    ("SOURCES", "sources"),
    ("MADE", "madeAt"),
    ("EXPIRES", "expiresAt"),
    ("REVOKED", "revokedAt"),
    ("FORMER UNTIL", "formerUntil"),
];

/// What a key may do.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Scope {
    /// Send events.
    Ingest,
    /// Call services.
    Call,
    /// Look at everything but keys and the audit log.
    Read,
    /// Pause, replay, move circuits.
    Operate,
    /// Everything.
    Admin,
}

impl Scope {
    fn word(self) -> &'static str {
        match self {
            Scope::Ingest => "ingest",
            Scope::Call => "call",
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// All keys, without what is secret.
    List,
    /// Makes a key. It is printed this once, and nothing besides it: `> FILE` makes a key file.
    Make {
        name: String,
        /// What it may do; may be given more than once.
        #[arg(long, required = true)]
        scope: Vec<Scope>,
        /// Only for this service; may be given more than once.
        #[arg(long)]
        service: Vec<String>,
        /// Only for events from this source; may be given more than once.
        #[arg(long)]
        source: Vec<String>,
        /// For how long it is good, like `90d`.
        #[arg(long, value_name = "TIME")]
        expires_in: Option<String>,
        #[command(flatten)]
        why: Why,
    },
    /// Another key under the same name. It is printed this once.
    Rotate {
        name: String,
        /// For how long the one before is still good, like `10m`; 1h unless said.
        #[arg(long, value_name = "TIME")]
        grace: Option<String>,
        #[command(flatten)]
        why: Why,
    },
    /// Takes a key back, at once.
    Revoke {
        name: String,
        #[command(flatten)]
        why: Why,
    },
}

impl Verb {
    pub(super) async fn run(self, session: &Session) -> Done {
        match self {
            Verb::List => session.whole_list(KEYS, COLUMNS).await,
            Verb::Make { name, scope, service, source, expires_in, why } => {
                let scopes: Vec<&str> = scope.into_iter().map(Scope::word).collect();
                let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty()).map(Value::from);
                let body = object([
                    ("name", Some(name.into())),
                    ("scopes", Some(scopes.into())),
                    ("services", some(service)),
                    ("sources", some(source)),
                    ("expiresIn", expires_in.map(Value::from)),
                ]);
                let data = session.ask(why.of(Ask::post(KEYS).json(body))).await?;
                secret(session, &data)
            }
            Verb::Rotate { name, grace, why } => {
                let ask = Ask::post(format!("{KEYS}/{}:rotate", path_part(&name)));
                let data = session.ask(why.of(ask.json(object([("grace", grace.map(Value::from))])))).await?;
                secret(session, &data)
            }
            Verb::Revoke { name, why } => {
                let ask = Ask::delete(format!("{KEYS}/{}", path_part(&name)));
                let data = session.ask(why.of(ask)).await?;
                session.told(&data, |_| format!("key `{name}` is revoked"))
            }
        }
    }
}

/// What is not said is left out.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> String {
    let said = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::from(said.collect::<Map<_, _>>()).to_string()
}

/// A key goes to stdout alone, so that it can go into a file.
fn secret(session: &Session, data: &Data) -> Done {
    let name = data.value["name"].as_str().unwrap_or_default();
    if session.out.json {
        return session.out.line(&data.text).map_err(|_| lost(name));
    }
    note(&format!("the key of `{name}`; it is shown this once, and the hub keeps only its hash"));
    if let Some(until) = data.value["formerUntil"].as_str() {
        note(&format!("the one before is good until {until}"));
    }
    let written = session.out.text(data.value["key"].as_str().unwrap_or_default());
    written.map_err(|_| lost(name))
}

/// Nobody has seen the key, also if whoever should have read it is only gone: that is no good end.
fn lost(name: &str) -> Failure {
    Failure::new(REFUSED, format!("the key of `{name}` could not be written, and nobody has it"))
        .and(format!("`seawall keys rotate {name} --grace 0s` makes another one in its place"))
}
