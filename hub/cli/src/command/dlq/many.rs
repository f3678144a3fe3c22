//! Work on many dead letters: how many first, then a question, then the work, and how far it is.

use std::num::NonZeroU64;

use clap::{Args, ValueEnum};
use seawall_hub_server::client::Ask;
use serde_json::{Map, Value, json};

use super::super::deliveries;
use super::super::follow::{self, follow};
use super::choose::{Choice, Chosen, Many, by_ids};
use super::{COLUMNS, DEAD_LETTERS, groups, letter, letters, path};
use crate::confirm::sure;
use crate::failure::{Done, Failure, NOT_ALL, REFUSED};
use crate::output::{cell, note};
use crate::talk::{Data, Session, Why};

/// How a dead letter is sent again.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    /// Again by today's rule.
    Render,
    /// The same bytes.
    Same,
}

/// How work on many is begun.
#[derive(Args)]
pub(crate) struct Manner {
    /// To so many at most.
    #[arg(long, value_name = "N")]
    max: Option<NonZeroU64>,
    /// Only says how many it would be, and shows some.
    #[arg(long)]
    dry_run: bool,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
    /// Does not wait until it has ended.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    why: Why,
}

#[derive(Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    choice: Choice,
    #[arg(long, default_value = "render")]
    mode: Mode,
    /// So many a second at most, of many; 50 unless said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: Option<u32>,
    /// So many first, then so many more, and the rest only if those go well; 1,10 unless said.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    canary: Vec<u32>,
    /// All at once, without a few first.
    #[arg(long, conflicts_with = "canary")]
    no_canary: bool,
    /// Also if it was replayed before; for one.
    #[arg(long)]
    again: bool,
    /// Waits until it has ended: many do unless you say `--detach`, one only if you say so.
    #[arg(long, conflicts_with = "detach")]
    follow: bool,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Args)]
pub(crate) struct Put {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Args)]
pub(crate) struct Purge {
    #[command(flatten)]
    choice: Choice,
    /// Does it. Without this it is only counted and shown.
    #[arg(long)]
    force: bool,
    /// So many at most.
    #[arg(long, value_name = "N")]
    max: Option<NonZeroU64>,
    /// Does not wait until it has ended.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    why: Why,
}

impl Replay {
    pub(super) async fn run(self, session: &Session) -> Done {
        let one = match self.choice.chosen()? {
            Chosen::One(id) if self.manner.dry_run => return self.many(session, by_ids(&[id])).await,
            Chosen::One(id) => id,
            Chosen::Many(many) if self.again => {
                let failure = Failure::usage("`--again` is for one: many are never sent twice by accident");
                let failure = failure.and("name one id with it, or leave it out");
                return Err(many.named().map_or(failure, |count| {
                    Failure::usage(format!("`--again` is for one id, and there are {count}"))
                }));
            }
            Chosen::Many(many) => return self.many(session, many).await,
        };
        let of_many = [
            ("--rate", self.rate.is_some()),
            ("--canary", !self.canary.is_empty()),
            ("--no-canary", self.no_canary),
            ("--max", self.manner.max.is_some()),
        ];
        if let Some((option, _)) = of_many.iter().find(|(_, said)| *said) {
            return Err(Failure::usage(format!(
                "`{option}` is for many, and this is one, which is sent at once"
            )));
        }
        let body = json!({"mode": self.mode(), "again": self.again});
        let ask = Ask::post(path(&one, ":replay")).json(body.to_string());
        let data = session.ask(self.manner.why.of(ask)).await;
        let data = data.map_err(|failure| failure.in_options("`again: true`", "here that is `--again`"))?;
        let delivery = cell(&data.value["delivery"]);
        if self.follow {
            return match deliveries::watch(session, &delivery).await? {
                true => Ok(()),
                false => Err(Failure::silent(NOT_ALL)),
            };
        }
        session.told(&data, |_| {
            format!("it goes out again as delivery {delivery}\nseawall deliveries show {delivery} --watch")
        })
    }

    const fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Render => "render",
            Mode::Same => "same",
        }
    }

    async fn many(self, session: &Session, many: Many) -> Done {
        let mut plan = Map::from_iter([("mode".to_owned(), json!(self.mode()))]);
        plan.extend(self.rate.map(|rate| ("ratePerSecond".to_owned(), json!(rate))));
        if self.no_canary {
            plan.insert("canary".into(), json!(false));
        } else if !self.canary.is_empty() {
            plan.insert("canary".into(), json!(self.canary));
        }
        Work { session, task: "replay", many, plan, dry: "dryRun", manner: &self.manner }.done().await
    }
}

impl Put {
    /// One at once, many as work.
    pub(super) async fn run(self, session: &Session, task: &'static str) -> Done {
        let many = match self.choice.chosen()? {
            Chosen::One(id) if !self.manner.dry_run => {
                return letter::put(session, &id, task, &self.manner.why).await;
            }
            Chosen::One(id) => by_ids(&[id]),
            Chosen::Many(many) => many,
        };
        Work { session, task, many, plan: Map::new(), dry: "dryRun", manner: &self.manner }.done().await
    }
}

impl Purge {
    pub(super) async fn run(self, session: &Session) -> Done {
        let Purge { choice, force, max, detach, why } = self;
        // Whoever insists has been asked.
        let manner = Manner { max, dry_run: !force, yes: true, detach, why };
        let many = choice.many()?;
        Work { session, task: "purge", many, plan: Map::new(), dry: "force", manner: &manner }.done().await
    }
}

/// Work that somebody wants.
struct Work<'a> {
    session: &'a Session,
    task: &'static str,
    many: Many,
    /// How it is done.
    plan: Map<String, Value>,
    /// Which field of the API says that it is only to be looked at: what is purged has to be forced.
    dry: &'static str,
    manner: &'a Manner,
}

impl Work<'_> {
    async fn done(mut self) -> Done {
        let Work { session, task, manner, .. } = self;
        let standing = self.of_group().await?;
        let seen = self.ask(true).await?;
        let count = seen.value["count"].as_u64().unwrap_or_default();
        if manner.dry_run {
            return self.shown(&seen, count);
        }
        if count == 0 {
            return Err(self.nothing(standing.as_ref()));
        }
        if !manner.yes {
            let about = if seen.value["countIsExact"] == true { "" } else { "at least " };
            sure(&format!("{} {about}{}{}?", capital(task), letters(count), self.how()))?;
        }
        let begun = self.ask(false).await?;
        let id = cell(&begun.value["id"]);
        if manner.detach {
            return session.told(&begun, |_| {
                format!("{task} of {} goes on as {id}\n{}", letters(count), follow::hints(&id))
            });
        }
        note(&format!("{task} of {} goes on as {id}", letters(count)));
        follow(session, &id, false).await
    }

    /// Whose group it is, so that it is known what the work waits for. A key for some sources only may not look at groups.
    async fn of_group(&mut self) -> Result<Option<Value>, Failure> {
        let Some(group) = self.many.group() else { return Ok(None) };
        let answer = self.session.raw(&Ask::get(groups::path(group, ""))).await?;
        if answer.status == 403 {
            return Ok(None);
        }
        let group = self.session.data(&answer)?.value;
        if !self.many.filter.contains_key("service") {
            self.many.filter.insert("service".into(), group["service"].clone());
        }
        Ok(Some(group))
    }

    async fn ask(&self, dry: bool) -> Result<Data, Failure> {
        let mut body = self.plan.clone();
        body.insert("filter".into(), Value::Object(self.many.filter.clone()));
        body.extend(self.manner.max.map(|max| ("max".to_owned(), json!(max))));
        body.insert(self.dry.into(), json!(if self.dry == "force" { !dry } else { dry }));
        let ask = Ask::post(format!("{DEAD_LETTERS}:{}", self.task)).json(Value::Object(body).to_string());
        self.session.ask(self.manner.why.of(ask)).await
    }

    /// What it would be.
    fn shown(&self, seen: &Data, count: u64) -> Done {
        let out = &self.session.out;
        if out.json {
            return out.line(&seen.text);
        }
        let about = if seen.value["countIsExact"] == true { "" } else { "at least " };
        out.text(&format!("{} would take {about}{}; nothing was done", self.task, letters(count)))?;
        if let Some(unindexed) = seen.value["unindexed"].as_u64().filter(|unindexed| *unindexed > 0) {
            note(&format!("{unindexed} more can't be found by their words yet"));
        }
        let sample = seen.value["sample"].as_array().map_or(&[][..], Vec::as_slice);
        out.section("Sample", COLUMNS, sample)?;
        match self.dry {
            "force" if count > 0 => out.text("\n`--force` does it, and there is no way back"),
            _ => Ok(()),
        }
    }

    fn how(&self) -> String {
        if self.task != "replay" {
            return String::new();
        }
        let mode = self.plan["mode"].as_str().unwrap_or_default();
        let rate = self.plan.get("ratePerSecond").and_then(Value::as_u64).unwrap_or(50);
        let canary = match self.plan.get("canary") {
            None => "first 1, then 10, then the rest".to_owned(),
            Some(Value::Array(stages)) => {
                let stages: Vec<String> = stages.iter().map(Value::to_string).collect();
                format!("first {}, then the rest", stages.join(", then "))
            }
            Some(_) => "without a canary".to_owned(),
        };
        format!(" (mode {mode}, up to {rate} a second, {canary})")
    }

    /// Why there is nothing to do.
    fn nothing(&self, group: Option<&Value>) -> Failure {
        let task = self.task;
        if let Some(group) = group {
            let counts = group["counts"].as_object().into_iter().flatten();
            let counts: Vec<String> = counts
                .filter(|(_, count)| count.as_u64() > Some(0))
                .map(|(standing, count)| format!("{standing}: {count}"))
                .collect();
            let has = if counts.is_empty() { "nothing is in it".to_owned() } else { counts.join(", ") };
            let name = cell(&group["fingerprint"]);
            return Failure::new(REFUSED, format!("group {name} has nothing to {task}; {has}"))
                .and("`--standing parked` takes those that were put aside");
        }
        match self.many.named() {
            Some(count) => {
                Failure::new(REFUSED, format!("none of {} can be taken to {task}", letters(count as u64)))
                    .and("`seawall dlq show ID` says where each stands")
            }
            None => Failure::new(REFUSED, format!("there is nothing to {task} that the filter takes"))
                .and("`seawall dlq list` with the same filter shows what there is"),
        }
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
