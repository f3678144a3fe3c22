//! How a command ends that did not go well: what, where, what to do about it, and a number for scripts.

use std::io::{self, Write};
use std::process::ExitCode;

use seawall_hub_server::client::{Answer, ClientError};
use serde_json::Value;

use crate::output::plain;

/// The hub, or a service behind it, said no.
pub(crate) const REFUSED: u8 = 1;
/// The command line, or a file that it names, is wrong.
pub(crate) const USAGE: u8 = 2;
/// There is no such thing.
pub(crate) const NOT_FOUND: u8 = 3;
/// The key is missing, unknown, or not for this.
pub(crate) const NOT_ALLOWED: u8 = 4;
/// The hub can't be reached, or can't serve.
pub(crate) const UNREACHABLE: u8 = 5;
/// Work on dead letters has ended, and not all of it went well.
pub(crate) const NOT_ALL: u8 = 6;
/// Somebody has stopped looking at work that goes on: what a shell says of Ctrl-C.
pub(crate) const LEFT: u8 = 130;

/// The end of a command that did not go well.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: u8,
    lines: Vec<String>,
}

/// Where to look for what is not there.
const LISTS: [(&str, &str); 12] = [
    ("there is no such service", "services list"),
    ("there is no such rule", "rules list"),
    ("there is no such source", "sources list"),
    ("there is no such key", "keys list"),
    ("there is no such event", "events list"),
    ("there is no such delivery", "deliveries list"),
    ("there is no such dead letter", "dlq list"),
    ("there is no such group", "dlq groups"),
    ("there is no such operation", "operations list"),
    ("there is no such incident", "alerts list"),
    ("there is no such alert rule", "alerts rules list"),
    ("there is no such channel", "alerts channels list"),
];

pub(crate) type Done = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(exit: u8, what: impl Into<String>) -> Self {
        Failure { exit, lines: vec![what.into()] }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Failure::new(USAGE, what)
    }

    /// Of work that talks to no hub.
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Failure::new(REFUSED, error.to_string())
    }

    /// Everything was said already.
    pub(crate) fn silent(exit: u8) -> Self {
        Failure { exit, lines: Vec::new() }
    }

    /// One more line.
    pub(crate) fn and(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The hub speaks of its API, and people here of options.
    pub(crate) fn in_options(self, said: &str, line: &str) -> Self {
        if self.lines.iter().any(|line| line.contains(said)) { self.and(line) } else { self }
    }

    /// What is said at last.
    pub(crate) fn tell(self) -> ExitCode {
        let mut out = String::new();
        for (at, line) in self.lines.iter().enumerate() {
            let before = if at == 0 { "seawall: " } else { "  " };
            out.push_str(&format!("{before}{}\n", plain(line)));
        }
        // Nobody is left to be told that it could not be told.
        let _ = io::stderr().write_all(out.as_bytes());
        ExitCode::from(self.exit)
    }

    /// Nobody answers.
    pub(crate) fn no_hub(address: &str, error: &ClientError) -> Self {
        match error {
            ClientError::Wrong(why) => Failure::usage(why),
            error => Failure::new(UNREACHABLE, format!("no hub answers at {address}: {error}"))
                .and("is it running? `seawall serve` starts one; `--url` or SEAWALL_URL says where it is"),
        }
    }

    /// The hub said no.
    pub(crate) fn refused(address: &str, answer: &Answer, has_key: bool) -> Self {
        let Answer { status, text, .. } = answer;
        let Some(body) = serde_json::from_str::<Value>(text).ok().filter(|body| body["code"].is_string())
        else {
            return Failure::no_envelope(address, answer);
        };
        let word = |field: &str| body[field].as_str().unwrap_or_default();
        // A service that is paused, or that a policy keeps calls away from, is no broken hub.
        let decided_by = body["data"]["decidedBy"].as_str();
        let of_service = decided_by.is_some() || word("code") == "paused";
        let exit = match status {
            401 | 403 => NOT_ALLOWED,
            404 => NOT_FOUND,
            500.. if !of_service => UNREACHABLE,
            _ => REFUSED,
        };
        // Below stands what it speaks of.
        let message = word("message").split("; `errors` says").next().unwrap_or_default();
        let mut failure = Failure::new(exit, format!("{message} ({status} {})", word("code")));
        for error in body["errors"].as_array().into_iter().flatten() {
            let field = error["field"].as_str().filter(|field| !field.is_empty()).unwrap_or("it");
            failure = failure.and(format!("{field}: {}", error["reason"].as_str().unwrap_or_default()));
        }
        if let Some(who) = decided_by {
            failure = failure.and(format!("decided by: {who}"));
        }
        match status {
            401 if has_key => failure.and("the hub does not know the key that was sent, or it has expired"),
            401 => failure.and("no key was sent: set SEAWALL_KEY, or name a file with `--key-file`"),
            403 => failure.and("use another key, or have one made: `seawall keys make NAME --scope SCOPE`"),
            404 => match LISTS.iter().find(|(said, _)| *said == message) {
                Some((_, list)) => failure.and(format!("`seawall {list}` shows what there is")),
                None => {
                    failure.and("the hub does not have this; is it of another version than this program?")
                }
            },
            412 => failure.and("somebody has changed it meanwhile: look at it again, then say its version"),
            500.. if !of_service => {
                failure.and(format!("the hub's log says more, under traceId={}", word("traceId")))
            }
            _ => failure,
        }
    }

    /// Something answers, but not as a hub does.
    fn no_envelope(address: &str, answer: &Answer) -> Self {
        let Answer { status, location, .. } = answer;
        if matches!(status, 414 | 431) {
            return Failure::usage(format!("what is asked for is longer than a hub reads ({status})"));
        }
        let failure =
            Failure::new(UNREACHABLE, format!("what answers at {address} is no hub: it says {status}"));
        match location {
            Some(location) => {
                failure.and(format!("it sends us to {location}; if the hub is there, say so with `--url`"))
            }
            None => failure.and("is the address right? `--url` or SEAWALL_URL says where the hub is"),
        }
    }
}

impl From<io::Error> for Failure {
    /// Of writing to stdout.
    fn from(error: io::Error) -> Self {
        // Whoever read it has seen enough.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::silent(0);
        }
        Failure::new(REFUSED, format!("can't write the output: {error}"))
    }
}
