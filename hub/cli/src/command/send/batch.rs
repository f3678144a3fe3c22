//! A file of events, in batches.

use std::collections::BTreeMap;
use std::io::BufReader;

use seawall_client::api::{BatchResult, FieldProblem};
use seawall_client::{ClientError, RawJson};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::lines::{Content, Lines};
use crate::connection::Session;
use crate::error::{CommandError, CommandResult, REFUSED};
use crate::input::{self, BODY_BYTES_MAX};
use crate::output::{ProgressBar, note};

/// The maximum number of events per request.
const BATCH_MAX: usize = 500;
/// The maximum number of bytes of events per request: the request limit less the envelope.
const BYTES_MAX: usize = BODY_BYTES_MAX - 1024;
/// The maximum number of rejected lines that are reported one by one.
const TOLD_MAX: u64 = 100;

/// An event and its line number.
type NumberedEvent = (u64, String);

/// Sends a file. An invalid event does not stop the others.
pub(super) async fn send(session: &Session, file: &str) -> CommandResult {
    let (reader, total) = input::open(file)?;
    let mut lines = Lines::new(BufReader::new(reader), BYTES_MAX);
    let name = if file == "-" { "stdin" } else { file };
    // Batches are retried for a while; a wrong URL should fail immediately.
    if let Err(error @ (ClientError::Unreachable { .. } | ClientError::Invalid(_))) =
        session.hub.ops().liveness().single_attempt().send().await
    {
        return Err(session.failed(&error));
    }
    let mut sending =
        BatchSender { session, name, progress: ProgressBar::new(total), tally: SendSummary::default() };
    let ended = sending.all(&mut lines).await;
    sending.progress.clear();
    let tally = &sending.tally;
    if session.out.json {
        session.out.line(&serde_json::to_string(tally).map_err(CommandError::of)?)?;
    } else {
        session.out.text(&tally.words())?;
    }
    match ended {
        Err(failure) => Err(failure
            .and("the rest of the file was not sent; send the whole file again, duplicates are ignored")),
        Ok(()) if tally.refused > 0 => Err(CommandError::silent(REFUSED)),
        Ok(()) => Ok(()),
    }
}

/// The results so far.
#[derive(Default, Serialize)]
struct SendSummary {
    accepted: u64,
    deduplicated: u64,
    refused: u64,
}

impl SendSummary {
    fn words(&self) -> String {
        let SendSummary { accepted, deduplicated, refused } = self;
        format!("accepted: {accepted}, deduplicated: {deduplicated}, refused: {refused}")
    }
}

struct BatchSender<'a> {
    session: &'a Session,
    name: &'a str,
    progress: ProgressBar,
    tally: SendSummary,
}

impl BatchSender<'_> {
    async fn all<R: std::io::BufRead>(&mut self, lines: &mut Lines<R>) -> CommandResult {
        let (mut batch, mut bytes): (Vec<NumberedEvent>, usize) = (Vec::new(), 0);
        loop {
            let line = lines
                .next()
                .map_err(|error| CommandError::usage(format!("can't read `{}`: {error}", self.name)))?;
            let event = match line {
                Some(line) => self.checked(line.number, line.content),
                None => break self.batch(batch).await?,
            };
            let Some(event) = event else { continue };
            if batch.len() == BATCH_MAX || bytes + event.1.len() + 1 > BYTES_MAX {
                self.batch(std::mem::take(&mut batch)).await?;
                bytes = 0;
                self.progress.at(lines.bytes, &self.tally.words());
            }
            bytes += event.1.len() + 1;
            batch.push(event);
        }
        Ok(())
    }

    /// The event in a line, if it is valid JSON.
    fn checked(&mut self, number: u64, content: Content) -> Option<NumberedEvent> {
        match content {
            Content::Text(text) => match serde_json::from_str::<&RawValue>(&text) {
                Ok(_) => return Some((number, text)),
                Err(error) => {
                    let what = error.to_string();
                    let what = what.split(" at line ").next().unwrap_or_default();
                    self.refuse(number, &format!("column {}: invalid JSON: {what}", error.column()));
                }
            },
            Content::TooLong => self.refuse(number, "the event is larger than 1 MiB"),
            Content::NotUtf8 => self.refuse(number, "not valid UTF-8"),
        }
        None
    }

    /// Sends a batch, without the events that the hub rejects, until the rest is accepted.
    async fn batch(&mut self, events: Vec<NumberedEvent>) -> CommandResult {
        let mut waiting = vec![events];
        while let Some(mut events) = waiting.pop() {
            if events.is_empty() {
                continue;
            }
            let list: Vec<&str> = events.iter().map(|(_, text)| text.as_str()).collect();
            let body = format!("{{\"events\":[{}]}}", list.join(","));
            // Every event has an id, so a retry creates no duplicates.
            let sent = self.session.hub.events().send_batch::<Value>(RawJson(body)).send().await;
            let error = match sent {
                Ok(reply) => {
                    self.count(&events, &reply.results);
                    continue;
                }
                Err(error) => error,
            };
            match error.status() {
                Some(422) => {
                    let wrong = wrong_events(error.problems(), events.len());
                    if wrong.is_empty() {
                        return Err(self.session.failed(&error));
                    }
                    for (at, why) in &wrong {
                        self.refuse(events[*at].0, why);
                    }
                    let mut at = 0;
                    events.retain(|_| {
                        at += 1;
                        !wrong.contains_key(&(at - 1))
                    });
                    waiting.push(events);
                }
                // One event is unreadable, or the batch is too large, and the response does not say which: split it.
                Some(400 | 413) if events.len() > 1 => {
                    let second = events.split_off(events.len() / 2);
                    waiting.extend([second, events]);
                }
                Some(400 | 413) => {
                    let why =
                        error.hub().map_or("the hub can't read this event", |error| &error.body.message);
                    self.refuse(events[0].0, why);
                }
                _ => return Err(self.session.failed(&error)),
            }
        }
        Ok(())
    }

    fn count(&mut self, events: &[NumberedEvent], results: &[BatchResult]) {
        for ((number, _), result) in events.iter().zip(results) {
            match result {
                BatchResult::Refused(event) => self.refuse(*number, &event.error.message),
                BatchResult::Accepted(event) if event.deduplicated => self.tally.deduplicated += 1,
                BatchResult::Accepted(_) => self.tally.accepted += 1,
            }
        }
    }

    fn refuse(&mut self, line: u64, why: &str) {
        self.tally.refused += 1;
        self.progress.clear();
        if self.tally.refused <= TOLD_MAX {
            note(&format!("{}:{line}: {why}", self.name));
        } else if self.tally.refused == TOLD_MAX + 1 {
            note("more lines are refused; they are only counted from here on");
        }
    }
}

/// The rejected events of a batch with their reasons: `events[3].type: required`.
fn wrong_events(problems: &[FieldProblem], count: usize) -> BTreeMap<usize, String> {
    let mut wrong: BTreeMap<usize, String> = BTreeMap::new();
    for FieldProblem { field, reason } in problems {
        let Some((at, rest)) = field.strip_prefix("events[").and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let Some(at) = at.parse().ok().filter(|at| *at < count) else { continue };
        let rest = rest.trim_start_matches('.');
        let why = wrong.entry(at).or_default();
        let (and, colon) = (if why.is_empty() { "" } else { "; " }, if rest.is_empty() { "" } else { ": " });
        why.push_str(&format!("{and}{rest}{colon}{reason}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: the problems of a batch are reported event by event.
    #[test]
    fn hub_10_what_is_wrong_is_told_event_by_event() {
        let problem =
            |(field, reason): (&str, &str)| FieldProblem { field: field.into(), reason: reason.into() };
        let problems = [
            ("events[1].type", "required"),
            ("events[1].id", "required"),
            ("events[0]", "must be an object"),
            ("events[9].id", "-"),
            ("events", "-"),
        ]
        .map(problem);
        let wrong: Vec<_> = wrong_events(&problems, 2).into_iter().collect();
        let expected = [(0, "must be an object".to_owned()), (1, "type: required; id: required".to_owned())];
        assert_eq!(wrong, expected);
        assert!(wrong_events(&[], 2).is_empty());
    }
}
