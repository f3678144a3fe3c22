//! What services, rules and sources have in common: they are listed, shown, put and deleted by name.

use clap::Args;
use seawall_hub_server::client::{Ask, path_part};
use serde_json::Value;

use crate::failure::Done;
use crate::input;
use crate::output::{Column, note};
use crate::talk::{Data, Session, Why};

/// A kind of thing that is registered by name.
pub(super) struct Resource {
    pub(super) path: &'static str,
    /// What people call it.
    pub(super) noun: &'static str,
    pub(super) columns: &'static [Column],
    /// The fields that are shown first.
    pub(super) first: &'static [&'static str],
}

#[derive(Args)]
pub(crate) struct Put {
    /// A JSON file, or `-` for stdin.
    #[arg(value_name = "FILE")]
    file: String,

    /// Only if this is its version now, so that nobody else's change is lost; 0 if it is to be new.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,

    #[command(flatten)]
    why: Why,
}

/// What becomes of deliveries that still wait for it.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Pending {
    /// Nothing is deleted while some wait.
    Refuse,
    /// They become dead letters.
    DeadLetter,
}

impl Resource {
    /// The path of one of them, with a verb or something below it.
    pub(super) fn at(&self, name: &str, rest: &str) -> String {
        format!("{}/{}{rest}", self.path, path_part(name))
    }

    pub(super) async fn list(&self, session: &Session) -> Done {
        session.whole_list(self.path, self.columns).await
    }

    pub(super) async fn show(&self, session: &Session, name: &str) -> Done {
        let data = session.get(self.at(name, "")).await?;
        session.show(&data, self.first)
    }

    pub(super) async fn put(&self, session: &Session, put: &Put) -> Done {
        let body = input::json_file(&put.file)?;
        let (none, some) = match put.if_version {
            Some(0) => (Some("*"), None),
            version => (None, version.map(|version| format!("\"{version}\""))),
        };
        let ask = Ask::post(self.path).json(body).header("if-none-match", none).header("if-match", some);
        let data = session.ask(put.why.of(ask)).await?;
        let word = if data.status == 201 { "made" } else { "changed" };
        for warning in data.value["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            note(&format!("warning: {warning}"));
        }
        self.told(session, &data, word)
    }

    /// Writes one by its name, whole or in part.
    pub(super) async fn write(
        &self,
        session: &Session,
        method: &'static str,
        name: &str,
        body: String,
        why: &Why,
    ) -> Done {
        let path = self.at(name, "");
        let ask = if method == "PUT" { Ask::put(path) } else { Ask::patch(path) };
        let data = session.ask(why.of(ask.json(body))).await?;
        let word = if data.status == 201 { "made" } else { "changed" };
        for warning in data.value["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            note(&format!("warning: {warning}"));
        }
        self.told(session, &data, word)
    }

    pub(super) async fn delete(
        &self,
        session: &Session,
        name: &str,
        pending: Option<Pending>,
        why: &Why,
    ) -> Done {
        let query = match pending {
            Some(Pending::DeadLetter) => "?pending=deadLetter",
            Some(Pending::Refuse) | None => "",
        };
        let data = session.ask(why.of(Ask::delete(self.at(name, query)))).await;
        let hint = "here that is `--pending dead-letter`";
        let data = data.map_err(|failure| failure.in_options("`pending=deadLetter`", hint))?;
        self.told(session, &data, "deleted")
    }

    /// A verb that answers with the thing as it is now.
    pub(super) async fn act(&self, session: &Session, name: &str, ask: Act<'_>) -> Done {
        let Act { verb, body, done, why } = ask;
        let ask = Ask::post(self.at(name, &format!(":{verb}")));
        let ask = match body {
            Some(body) => ask.json(body.to_string()),
            None => ask,
        };
        let data = session.ask(why.of(ask)).await?;
        self.told(session, &data, done)
    }

    fn told(&self, session: &Session, data: &Data, word: &str) -> Done {
        session.told(data, |value| {
            let version =
                value["version"].as_u64().map_or_else(String::new, |version| format!(" (version {version})"));
            format!("{} `{}` is {word}{version}", self.noun, value["name"].as_str().unwrap_or_default())
        })
    }
}

/// A verb, and how to say that it is done.
pub(super) struct Act<'a> {
    pub(super) verb: &'a str,
    pub(super) body: Option<Value>,
    pub(super) done: &'a str,
    pub(super) why: &'a Why,
}
