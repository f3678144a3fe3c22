//! The connection to a hub: its URL, the key and its responses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use seawall::{Clock, Retry};
use seawall_client::{ApiCall, Client, ClientError, Reply};
use serde::de::DeserializeOwned;

use crate::error::{CommandError, CommandResult, UNREACHABLE};
use crate::output::{OutputWriter, note};

const HEADING: &str = "Connection";
/// The number of attempts of a long-running command, which waits for a hub that restarts or has no room.
const PATIENT_ATTEMPTS: u32 = 8;

#[derive(Args)]
pub(crate) struct ConnectArgs {
    /// URL of the hub.
    #[arg(long, env = "SEAWALL_URL", global = true, help_heading = HEADING, default_value = "http://127.0.0.1:8480")]
    url: String,

    /// File with the API key. Without it, the key comes from SEAWALL_KEY, then SEAWALL_ADMIN_KEY.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    key_file: Option<PathBuf>,

    /// Accepted only to be refused with an explanation.
    #[arg(long, global = true, hide = true, num_args = 0..=1, default_missing_value = "")]
    key: Option<String>,

    /// Time limit of a response, such as `5s` (default 30s).
    #[arg(long, value_name = "TIME", global = true, help_heading = HEADING, value_parser = time)]
    timeout: Option<Duration>,

    /// Print JSON: the `data` of the response.
    #[arg(long, global = true, help_heading = HEADING)]
    json: bool,
}

/// The reason for a change.
#[derive(Args)]
pub(crate) struct ReasonArg {
    /// Reason, recorded in the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl ReasonArg {
    /// Adds the reason to a request.
    pub(crate) fn of<T>(&self, call: ApiCall<T>) -> ApiCall<T> {
        match &self.reason {
            Some(reason) => call.reason(reason),
            None => call,
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = seawall::config::duration(text)?;
    if time.is_zero() { Err("must be more than zero".into()) } else { Ok(time) }
}

impl ConnectArgs {
    pub(crate) fn out(&self) -> OutputWriter {
        OutputWriter::new(self.json)
    }

    /// A session with the hub.
    pub(crate) fn session(&self, clock: Clock) -> Result<Session, CommandError> {
        if self.key.is_some() {
            return Err(CommandError::usage(
                "`--key` is not supported: every user of this machine can read command lines",
            )
            .and("set SEAWALL_KEY, or pass a file with `--key-file`"));
        }
        let key = match &self.key_file {
            Some(file) => Some((key_of(file)?, format!("the key file `{}`", file.display()))),
            None => ["SEAWALL_KEY", "SEAWALL_ADMIN_KEY"].into_iter().find_map(|name| {
                let key = std::env::var(name).ok().map(|key| key.trim().to_owned());
                key.filter(|key| !key.is_empty()).map(|key| (key, name.to_owned()))
            }),
        };
        let mut builder = Client::builder(&self.url);
        if let Some((key, _)) = &key {
            builder = builder.key(key);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        // One caller with one request at a time can't multiply an outage, so that its retries need no budget.
        let builder = builder.attempts(PATIENT_ATTEMPTS).retry(Retry::no_budget);
        let hub = builder.build().map_err(|error| CommandError::usage(error.to_string()))?;
        let key_origin = key.map(|(_, origin)| origin);
        Ok(Session { hub, out: self.out(), timeout: self.timeout, key_origin, clock })
    }
}

fn key_of(file: &Path) -> Result<String, CommandError> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError::usage(format!("can't read the key file `{name}`: {error}")))?;
    let key = text.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(CommandError::usage(format!(
            "the key file `{name}` must hold one line with the key and nothing else"
        )));
    }
    if others_can_read(file) {
        note(&format!("other users can read the key file `{name}`; run `chmod 600 {name}`"));
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

/// A connection to one hub, with the output for its responses.
pub(crate) struct Session {
    pub(crate) hub: Client,
    pub(crate) out: OutputWriter,
    /// The time limit from the command line; `None` means the default.
    pub(crate) timeout: Option<Duration>,
    /// The clock of this machine.
    pub(crate) clock: Clock,
    /// Where the key comes from; `None` if there is none.
    key_origin: Option<String>,
}

impl Session {
    /// Sends a request once and returns its response. There is no retry: a person at a terminal wants to know at once that no hub answers.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: ApiCall<T>) -> Result<Reply<T>, CommandError> {
        self.send_patiently(call.single_attempt()).await
    }

    /// The same, and repeats what may be repeated until the hub is back.
    pub(crate) async fn send_patiently<T: DeserializeOwned>(
        &self,
        call: ApiCall<T>,
    ) -> Result<Reply<T>, CommandError> {
        call.send().await.map_err(|error| self.failed(&error))
    }

    /// The error of a command whose request failed.
    pub(crate) fn failed(&self, error: &ClientError) -> CommandError {
        CommandError::of_hub(self.hub.url(), error, self.key_origin.as_deref())
    }

    /// The error for a response that ended too early.
    pub(crate) fn broke_off(&self, error: &ClientError) -> CommandError {
        let reason = match error {
            ClientError::Unreachable { reason, .. } => reason.clone(),
            error => error.to_string(),
        };
        CommandError::new(
            UNREACHABLE,
            format!("the response of {} was interrupted: {reason}", self.hub.url()),
        )
    }

    /// Prints one object, for people or as JSON.
    pub(crate) fn show<T>(&self, reply: &Reply<T>, first: &[&str]) -> CommandResult {
        self.show_without(reply, first, &[])
    }

    /// The same; people do not see the fields in `without`.
    pub(crate) fn show_without<T>(
        &self,
        reply: &Reply<T>,
        first: &[&str],
        without: &[&str],
    ) -> CommandResult {
        match self.out.json {
            true => self.out.line(reply.text()),
            false => self.out.describe(reply.text(), first, without),
        }
    }

    /// Prints a result: a sentence for people, or the data as JSON.
    pub(crate) fn told<T>(&self, reply: &Reply<T>, sentence: impl FnOnce(&T) -> String) -> CommandResult {
        if self.out.json { self.out.line(reply.text()) } else { self.out.text(&sentence(reply)) }
    }
}
