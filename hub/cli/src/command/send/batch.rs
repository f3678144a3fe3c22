//! A file of events, in batches.

use std::collections::BTreeMap;
use std::io::BufReader;

use seawall_hub_server::client::Ask;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::EVENTS;
use super::lines::{Content, Lines};
use crate::failure::{Done, Failure, REFUSED};
use crate::input::{self, BODY_BYTES_MAX};
use crate::output::{Progress, note};
use crate::talk::Session;

/// So many events are sent at once,
const BATCH_MAX: usize = 500;
/// and so many bytes: a request has no more, and there is something around the events.
const BYTES_MAX: usize = BODY_BYTES_MAX - 1024;
/// So many lines with mistakes are told one by one.
const TOLD_MAX: u64 = 100;

/// An event and the line that it stands in.
type Event = (u64, String);

/// Sends a file. A mistake in one event does not keep the others back.
pub(super) async fn send(session: &Session, file: &str) -> Done {
    let (reader, total) = input::open(file)?;
    let mut lines = Lines::new(BufReader::new(reader), BYTES_MAX);
    let name = if file == "-" { "stdin" } else { file };
    // Batches are sent again for a while if nobody answers. Whoever has a wrong address learns it at once.
    session.raw(&Ask::get("/actuator/health/liveness")).await?;
    let mut sending = Sending { session, name, progress: Progress::new(total), tally: Tally::default() };
    let ended = sending.all(&mut lines).await;
    sending.progress.clear();
    let tally = &sending.tally;
    if session.out.json {
        let Tally { accepted, deduplicated, refused } = tally;
        let data = json!({"accepted": accepted, "deduplicated": deduplicated, "refused": refused});
        session.out.line(&data.to_string())?;
    } else {
        session.out.text(&tally.words())?;
    }
    match ended {
        Err(failure) => Err(failure.and(
            "the rest of the file was not sent; it may be sent again as a whole, and nothing happens twice",
        )),
        Ok(()) if tally.refused > 0 => Err(Failure::silent(REFUSED)),
        Ok(()) => Ok(()),
    }
}

/// What became of the events so far.
#[derive(Default)]
struct Tally {
    accepted: u64,
    deduplicated: u64,
    refused: u64,
}

impl Tally {
    fn words(&self) -> String {
        let Tally { accepted, deduplicated, refused } = self;
        format!("accepted: {accepted}, deduplicated: {deduplicated}, refused: {refused}")
    }
}

struct Sending<'a> {
    session: &'a Session,
    name: &'a str,
    progress: Progress,
    tally: Tally,
}

impl Sending<'_> {
    async fn all<R: std::io::BufRead>(&mut self, lines: &mut Lines<R>) -> Done {
        let (mut batch, mut bytes): (Vec<Event>, usize) = (Vec::new(), 0);
        loop {
            let line = lines
                .next()
                .map_err(|error| Failure::usage(format!("`{}` can't be read: {error}", self.name)))?;
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

    /// A line that may stand in a batch.
    fn checked(&mut self, number: u64, content: Content) -> Option<Event> {
        match content {
            Content::Text(text) => match serde_json::from_str::<&RawValue>(&text) {
                Ok(_) => return Some((number, text)),
                Err(error) => {
                    let what = error.to_string();
                    let what = what.split(" at line ").next().unwrap_or_default();
                    self.refuse(number, &format!("column {}: it is no JSON: {what}", error.column()));
                }
            },
            Content::TooLong => self.refuse(number, "it is larger than an event may be, which is 1 MiB"),
            Content::NotUtf8 => self.refuse(number, "it is not UTF-8"),
        }
        None
    }

    /// Sends these, and without those that the hub finds wrong, until it takes the rest.
    async fn batch(&mut self, events: Vec<Event>) -> Done {
        let mut waiting = vec![events];
        while let Some(mut events) = waiting.pop() {
            if events.is_empty() {
                continue;
            }
            let list: Vec<&str> = events.iter().map(|(_, text)| text.as_str()).collect();
            let body = format!("{{\"events\":[{}]}}", list.join(","));
            // Each has an id, so sending it twice is the same as once.
            let ask = Ask::post(format!("{EVENTS}:batchCreate")).json(body).patient();
            let answer = self.session.raw(&ask).await?;
            match answer.status {
                422 => {
                    let wrong = wrong_events(&answer.text, events.len());
                    if wrong.is_empty() {
                        return self.session.data(&answer).map(drop);
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
                // One of them can't be read, or they are too large together, and nobody says which: look closer.
                400 | 413 if events.len() > 1 => {
                    let second = events.split_off(events.len() / 2);
                    waiting.extend([second, events]);
                }
                400 | 413 => {
                    let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
                    self.refuse(events[0].0, body["message"].as_str().unwrap_or("the hub can't read it"));
                }
                _ => self.count(&events, &self.session.data(&answer)?.value["results"]),
            }
        }
        Ok(())
    }

    fn count(&mut self, events: &[Event], results: &Value) {
        for (at, (number, _)) in events.iter().enumerate() {
            let result = &results[at];
            if let Some(why) = result["error"]["message"].as_str() {
                self.refuse(*number, why);
            } else if result["deduplicated"] == true {
                self.tally.deduplicated += 1;
            } else {
                self.tally.accepted += 1;
            }
        }
    }

    fn refuse(&mut self, line: u64, why: &str) {
        self.tally.refused += 1;
        self.progress.clear();
        if self.tally.refused <= TOLD_MAX {
            note(&format!("{}:{line}: {why}", self.name));
        } else if self.tally.refused == TOLD_MAX + 1 {
            note("more lines are refused; they are counted, and not told any more");
        }
    }
}

/// Which events of a batch are wrong, and why: `events[3].type: it is missing`.
fn wrong_events(text: &str, count: usize) -> BTreeMap<usize, String> {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let mut wrong: BTreeMap<usize, String> = BTreeMap::new();
    for error in body["errors"].as_array().into_iter().flatten() {
        let field = error["field"].as_str().unwrap_or_default();
        let Some((at, rest)) = field.strip_prefix("events[").and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let Some(at) = at.parse().ok().filter(|at| *at < count) else { continue };
        let (rest, reason) = (rest.trim_start_matches('.'), error["reason"].as_str().unwrap_or_default());
        let why = wrong.entry(at).or_default();
        let (and, colon) = (if why.is_empty() { "" } else { "; " }, if rest.is_empty() { "" } else { ": " });
        why.push_str(&format!("{and}{rest}{colon}{reason}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: what is wrong with a batch is told event by event.
    #[test]
    fn hub_10_what_is_wrong_is_told_event_by_event() {
        let text = json!({"errors": [
            {"field": "events[1].type", "reason": "it is missing"}, {"field": "events[1].id", "reason": "it is missing"},
            {"field": "events[0]", "reason": "an object is expected"}, {"field": "events[9].id", "reason": "-"},
            {"field": "events", "reason": "-"},
        ]});
        let wrong: Vec<_> = wrong_events(&text.to_string(), 2).into_iter().collect();
        let expected = [
            (0, "an object is expected".to_owned()),
            (1, "type: it is missing; id: it is missing".to_owned()),
        ];
        assert_eq!(wrong, expected);
        assert!(wrong_events("no json", 2).is_empty());
    }
}
