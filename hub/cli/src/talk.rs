//! Talking to a hub: where it is, who we are, and what it says.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use seawall_hub_server::client::{Answer, Ask, Client, ClientError, Opened, Pieces};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::{Done, Failure, UNREACHABLE};
use crate::output::{Out, note};

const HEADING: &str = "The hub to talk to";
/// So long an answer may take, unless somebody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct Talk {
    /// Where the hub is.
    #[arg(long, env = "SEAWALL_URL", global = true, help_heading = HEADING, default_value = "http://127.0.0.1:8480")]
    url: String,

    /// A file that holds the key. Without it the key is SEAWALL_KEY, or else SEAWALL_ADMIN_KEY.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    key_file: Option<PathBuf>,

    /// Only so that whoever tries it is told why not.
    #[arg(long, global = true, hide = true, num_args = 0..=1, default_missing_value = "")]
    key: Option<String>,

    /// How long an answer may take, like `5s`; 30s unless said.
    #[arg(long, value_name = "TIME", global = true, help_heading = HEADING, value_parser = time)]
    timeout: Option<Duration>,

    /// Prints JSON, for programs: what stands in the answer's `data`.
    #[arg(long, global = true, help_heading = HEADING)]
    json: bool,
}

/// Why something is changed.
#[derive(Args)]
pub(crate) struct Why {
    /// Why you do it: kept in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl Why {
    /// A question that says why it is asked.
    pub(crate) fn of(&self, ask: Ask) -> Ask {
        because(ask, self.reason.as_deref())
    }
}

pub(crate) fn because(ask: Ask, reason: Option<&str>) -> Ask {
    ask.header("x-seawall-reason", reason)
}

fn time(text: &str) -> Result<Duration, String> {
    let time = seawall::config::duration(text)?;
    if time.is_zero() { Err("it is more than zero".into()) } else { Ok(time) }
}

impl Talk {
    pub(crate) fn out(&self) -> Out {
        Out::new(self.json)
    }

    /// A session with the hub.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        if self.key.is_some() {
            return Err(Failure::usage(
                "there is no `--key`: everybody on this machine can read what stands on a command line",
            )
            .and("set SEAWALL_KEY, or name a file that holds the key with `--key-file`"));
        }
        let key = match &self.key_file {
            Some(file) => Some(key_of(file)?),
            None => ["SEAWALL_KEY", "SEAWALL_ADMIN_KEY"].into_iter().find_map(|name| {
                std::env::var(name).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty())
            }),
        };
        let client = Client::new(&self.url, key.as_deref(), self.timeout.unwrap_or(TIMEOUT))
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Session { client, out: self.out(), timeout: self.timeout, has_key: key.is_some() })
    }
}

fn key_of(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("the key file `{name}` can't be read: {error}")))?;
    let key = text.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(Failure::usage(format!(
            "the key file `{name}` holds no key: one line, nothing besides it"
        )));
    }
    if others_can_read(file) {
        note(&format!("others on this machine can read the key in `{name}`; `chmod 600 {name}` helps"));
    }
    Ok(key.to_owned())
}

#[cfg(unix)]
fn others_can_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_file: &Path) -> bool {
    false
}

/// Questions to one hub, and where the answers go.
pub(crate) struct Session {
    client: Client,
    pub(crate) out: Out,
    /// What was said on the command line.
    pub(crate) timeout: Option<Duration>,
    has_key: bool,
}

/// What a hub answered, when it went well.
pub(crate) struct Data {
    pub(crate) status: u16,
    /// As it came: a number that no program here can hold is still the same number.
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl Session {
    pub(crate) async fn get(&self, path: impl Into<String>) -> Result<Data, Failure> {
        self.ask(Ask::get(path)).await
    }

    /// What the answer holds.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Data, Failure> {
        let answer = self.answer(&self.client, &ask).await?;
        self.data(&answer)
    }

    /// The same, for an answer that may take longer.
    pub(crate) async fn ask_within(&self, ask: &Ask, time: Duration) -> Result<Data, Failure> {
        let answer = self.answer(&self.client.waiting(time), ask).await?;
        self.data(&answer)
    }

    /// A body that may be larger than memory.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<Pieces, Failure> {
        let opened = self.client.open(ask).await;
        match opened.map_err(|error| Failure::no_hub(self.client.address(), &error))? {
            Opened::Body(pieces) => Ok(pieces),
            Opened::Refused(answer) => Err(Failure::refused(self.client.address(), &answer, self.has_key)),
        }
    }

    /// It came, and not to its end.
    pub(crate) fn broke_off(&self, error: &ClientError) -> Failure {
        Failure::new(UNREACHABLE, format!("the answer of {} broke off: {error}", self.client.address()))
    }

    /// The answer itself, whatever it says.
    pub(crate) async fn raw(&self, ask: &Ask) -> Result<Answer, Failure> {
        self.answer(&self.client, ask).await
    }

    async fn answer(&self, client: &Client, ask: &Ask) -> Result<Answer, Failure> {
        client.ask(ask).await.map_err(|error| Failure::no_hub(client.address(), &error))
    }

    /// What an answer holds, if it went well.
    pub(crate) fn data(&self, answer: &Answer) -> Result<Data, Failure> {
        let refused = || Failure::refused(self.client.address(), answer, self.has_key);
        if !(200..300).contains(&answer.status) {
            return Err(refused());
        }
        let mut envelope: HashMap<String, Box<RawValue>> =
            serde_json::from_str(&answer.text).map_err(|_| refused())?;
        let text = envelope.remove("data").ok_or_else(refused)?.get().to_owned();
        let value = serde_json::from_str(&text).map_err(|_| refused())?;
        Ok(Data { status: answer.status, text, value })
    }

    /// One thing, for people or for programs.
    pub(crate) fn show(&self, data: &Data, first: &[&str]) -> Done {
        if self.out.json { self.out.line(&data.text) } else { self.out.describe(&data.value, first) }
    }

    /// What was done: the data for programs, a sentence for people.
    pub(crate) fn told(&self, data: &Data, sentence: impl FnOnce(&Value) -> String) -> Done {
        if self.out.json { self.out.line(&data.text) } else { self.out.text(&sentence(&data.value)) }
    }
}
