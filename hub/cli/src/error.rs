//! The error of a command: message, cause, remedy and exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use seawall_client::api::{CallFailure, ErrorCode};
use seawall_client::{ClientError, HubError, RawResponse};
use serde::Deserialize;

use crate::output::plain;

/// The hub or a service rejected the request.
pub(crate) const REFUSED: u8 = 1;
/// The command line, or a file that it names, is invalid.
pub(crate) const USAGE: u8 = 2;
/// Not found.
pub(crate) const NOT_FOUND: u8 = 3;
/// The key is missing, unknown or lacks the scope.
pub(crate) const NOT_ALLOWED: u8 = 4;
/// The hub is unreachable or unavailable.
pub(crate) const UNREACHABLE: u8 = 5;
/// A bulk operation ended without full success.
pub(crate) const NOT_ALL: u8 = 6;
/// Ctrl-C, as shells report it; the operation continues.
pub(crate) const LEFT: u8 = 130;

/// A failed command: its exit code and its lines on stderr.
#[derive(Debug)]
pub(crate) struct CommandError {
    exit: u8,
    lines: Vec<String>,
}

/// The list to suggest when something is not found.
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

pub(crate) type CommandResult = Result<(), CommandError>;

impl CommandError {
    pub(crate) fn new(exit: u8, what: impl Into<String>) -> Self {
        CommandError { exit, lines: vec![what.into()] }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        CommandError::new(USAGE, what)
    }

    /// The error of a command that does not connect to a hub.
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        CommandError::new(REFUSED, error.to_string())
    }

    /// An error whose output is already printed.
    pub(crate) fn silent(exit: u8) -> Self {
        CommandError { exit, lines: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn and(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a line about options where the hub's message names an API field.
    pub(crate) fn in_options(self, said: &str, line: &str) -> Self {
        if self.lines.iter().any(|line| line.contains(said)) { self.and(line) } else { self }
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn tell(self) -> ExitCode {
        let mut out = String::new();
        for (at, line) in self.lines.iter().enumerate() {
            let before = if at == 0 { "seawall: " } else { "  " };
            out.push_str(&format!("{before}{}\n", plain(line)));
        }
        // If stderr is closed, there is no place left to report to.
        let _ = io::stderr().write_all(out.as_bytes());
        ExitCode::from(self.exit)
    }

    /// The error of a request.
    pub(crate) fn of_hub(address: &str, error: &ClientError, key_origin: Option<&str>) -> Self {
        match error {
            ClientError::Invalid(why) => CommandError::usage(why),
            ClientError::Unreachable { reason, .. } => {
                CommandError::new(UNREACHABLE, format!("can't reach the hub at {address}: {reason}")).and(
                    "is it running? `seawall serve` starts one; set its address with `--url` or SEAWALL_URL",
                )
            }
            ClientError::Rejected(error) => CommandError::rejected(error, key_origin),
            ClientError::NotAHub(response) => CommandError::no_envelope(address, response),
            error => CommandError::new(UNREACHABLE, error.to_string())
                .and("is the hub's version different from this program's?"),
        }
    }

    /// The error for a rejected request.
    fn rejected(error: &HubError, key_origin: Option<&str>) -> Self {
        let HubError { status, body, .. } = error;
        // A paused service, or one whose policy rejects calls, does not mean that the hub is broken.
        let decided_by = CallFailure::deserialize(&body.data).ok().and_then(|failure| failure.decided_by);
        let of_service = decided_by.is_some() || body.code == ErrorCode::Paused;
        let exit = match status {
            401 | 403 => NOT_ALLOWED,
            404 => NOT_FOUND,
            500.. if !of_service => UNREACHABLE,
            _ => REFUSED,
        };
        // The lines below list the errors.
        let message = body.message.split("; see `errors`").next().unwrap_or_default();
        let mut failure = CommandError::new(exit, format!("{message} ({status} {})", body.code));
        for error in &body.errors {
            let field = if error.field.is_empty() { "request" } else { &error.field };
            failure = failure.and(format!("{field}: {}", error.reason));
        }
        if let Some(policy) = decided_by {
            failure = failure.and(format!("decided by: {policy}"));
        }
        match (status, key_origin) {
            (401, Some(origin)) => failure.and(format!("the key comes from {origin}")),
            (401, None) => failure.and("no key was sent: set SEAWALL_KEY, or pass a file with `--key-file`"),
            (403, _) => failure.and("use another key, or create one: `seawall keys make NAME --scope SCOPE`"),
            (404, _) => match LISTS.iter().find(|(said, _)| *said == message) {
                Some((_, list)) => failure.and(format!("`seawall {list}` lists the existing ones")),
                None => failure
                    .and("the hub does not support this; is its version different from this program's?"),
            },
            (412, _) => {
                failure.and("changed concurrently: read it again, and pass its version with `--if-version`")
            }
            (500.., _) if !of_service => {
                failure.and(format!("see the hub's log for traceId={}", body.trace_id))
            }
            _ => failure,
        }
    }

    /// The error for a response that is not from a hub.
    fn no_envelope(address: &str, answer: &RawResponse) -> Self {
        let RawResponse { status, location, .. } = answer;
        if matches!(status, 414 | 431) {
            return CommandError::usage(format!("the request is too long ({status})"));
        }
        let failure = CommandError::new(
            UNREACHABLE,
            format!("the server at {address} is not a hub: it responds with {status}"),
        );
        match location {
            Some(location) => failure
                .and(format!("it redirects to {location}; if the hub is there, pass that with `--url`")),
            None => failure.and("is the address right? Set it with `--url` or SEAWALL_URL"),
        }
    }
}

impl From<io::Error> for CommandError {
    /// The error of writing to stdout.
    fn from(error: io::Error) -> Self {
        // The reader closed the pipe, which is not an error.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandError::silent(0);
        }
        CommandError::new(REFUSED, format!("can't write the output: {error}"))
    }
}
