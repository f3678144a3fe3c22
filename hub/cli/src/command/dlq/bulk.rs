//! Bulk operations on dead letters: preview, confirmation, start and progress.

use clap::{Args, ValueEnum};
use seawall_client::api::{
    BulkInput, BulkOptions, BulkResult, BulkTask, Canary, DeadLetterGroup, PurgeInput, ReplayGroupInput,
    ReplayInput, ReplayManyInput, ReplayMode, ReplayOptions,
};
use seawall_client::{ApiCall, Reply};

use super::super::deliveries;
use super::super::follow::{self, follow};
use super::selection::{BulkSelection, LetterSelection, SelectedLetters, by_ids};
use super::{COLUMNS, letter, letters};
use crate::confirm::sure;
use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult, NOT_ALL, REFUSED, UNREACHABLE};
use crate::input::whole;
use crate::output::note;

/// The rate of a bulk replay without `--rate`.
const RATE: u32 = 50;

/// How a replay makes its request.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// Render with the current rule.
    Render,
    /// Send the original request.
    Same,
}

impl From<ModeArg> for ReplayMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Render => ReplayMode::Render,
            ModeArg::Same => ReplayMode::Same,
        }
    }
}

/// Options of a bulk operation.
#[derive(Args)]
pub(crate) struct BulkArgs {
    /// Maximum number of dead letters.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    max: Option<u64>,
    /// Dry run: only show the count and a sample.
    #[arg(long)]
    dry_run: bool,
    /// Skip confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Do not wait for the operation to end.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    why: ReasonArg,
}

#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    choice: LetterSelection,
    /// How to make the request.
    #[arg(long, default_value = "render")]
    mode: ModeArg,
    /// Maximum rate per second of a bulk replay (default 50).
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=10_000))]
    rate: Option<u32>,
    /// Canary stages of a bulk replay: each must succeed before the next starts (default 1,10).
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = whole::<u32>(1..=u32::MAX.into()))]
    canary: Vec<u32>,
    /// Replay without canary stages.
    #[arg(long, conflicts_with = "canary")]
    no_canary: bool,
    /// Allow a second replay of the same dead letter; for a single id.
    #[arg(long)]
    again: bool,
    /// Wait for the replay of a single id to end; bulk replays wait unless `--detach` is given.
    #[arg(long, conflicts_with = "detach")]
    follow: bool,
    #[command(flatten)]
    manner: BulkArgs,
}

#[derive(Args)]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    choice: LetterSelection,
    #[command(flatten)]
    manner: BulkArgs,
}

#[derive(Args)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    choice: LetterSelection,
    /// Purge; without this option, only show the count and a sample.
    #[arg(long)]
    force: bool,
    /// Maximum number of dead letters.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    max: Option<u64>,
    /// Do not wait for the operation to end.
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    why: ReasonArg,
}

impl ReplayArgs {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let one = match self.choice.chosen(&session.clock)? {
            SelectedLetters::One(id) if self.manner.dry_run => {
                return self.many(session, by_ids(&[id])).await;
            }
            SelectedLetters::One(id) => id,
            SelectedLetters::Many(many) if self.again => {
                let failure = CommandError::usage(
                    "`--again` applies to a single dead letter, so that a bulk replay never sends one twice",
                );
                let failure = failure.and("pass one id, or omit `--again`");
                return Err(many.named().map_or(failure, |count| {
                    CommandError::usage(format!("`--again` applies to a single id, but {count} are given"))
                }));
            }
            SelectedLetters::Many(many) => return self.many(session, *many).await,
        };
        let of_many = [
            ("--rate", self.rate.is_some()),
            ("--canary", !self.canary.is_empty()),
            ("--no-canary", self.no_canary),
            ("--max", self.manner.max.is_some()),
        ];
        if let Some((option, _)) = of_many.iter().find(|(_, said)| *said) {
            return Err(CommandError::usage(format!(
                "`{option}` applies to bulk replays; a single id is replayed immediately"
            )));
        }
        let options = ReplayOptions { again: Some(self.again), reason: None };
        let input = ReplayInput { mode: Some(self.mode.into()), options };
        let call = session.hub.dead_letters().replay(&one, &input);
        let reply = session.send(self.manner.why.of(call)).await;
        let reply = reply.map_err(|failure| failure.in_options("`again: true`", "use `--again`"))?;
        let delivery = &reply.delivery;
        if self.follow {
            return match deliveries::watch(session, delivery.as_str()).await? {
                true => Ok(()),
                false => Err(CommandError::silent(NOT_ALL)),
            };
        }
        session.told(&reply, |_| {
            format!("replay started as delivery {delivery}\nseawall deliveries show {delivery} --watch")
        })
    }

    async fn many(self, session: &Session, many: BulkSelection) -> CommandResult {
        let canary = match (self.no_canary, self.canary.is_empty()) {
            (true, _) => Some(Canary::Switch(false)),
            (false, false) => Some(Canary::Stages(self.canary)),
            (false, true) => None,
        };
        let plan = ReplayGroupInput {
            mode: Some(self.mode.into()),
            rate_per_second: self.rate,
            canary,
            ..ReplayGroupInput::default()
        };
        BulkJob { session, task: BulkTask::Replay, many, plan, manner: &self.manner }.run().await
    }
}

impl MoveArgs {
    /// One immediately, several as a bulk operation.
    pub(super) async fn run(self, session: &Session, task: BulkTask) -> CommandResult {
        let many = match self.choice.chosen(&session.clock)? {
            SelectedLetters::One(id) if !self.manner.dry_run => {
                return letter::act(session, &id, &task, &self.manner.why).await;
            }
            SelectedLetters::One(id) => by_ids(&[id]),
            SelectedLetters::Many(many) => *many,
        };
        let plan = ReplayGroupInput::default();
        BulkJob { session, task, many, plan, manner: &self.manner }.run().await
    }
}

impl PurgeArgs {
    pub(super) async fn run(self, session: &Session) -> CommandResult {
        let PurgeArgs { choice, force, max, detach, why } = self;
        // `--force` is the confirmation.
        let manner = BulkArgs { max, dry_run: !force, yes: true, detach, why };
        let (many, plan) = (choice.many(&session.clock)?, ReplayGroupInput::default());
        BulkJob { session, task: BulkTask::Purge, many, plan, manner: &manner }.run().await
    }
}

/// A bulk operation to preview and start.
struct BulkJob<'a> {
    session: &'a Session,
    task: BulkTask,
    many: BulkSelection,
    /// The replay options.
    plan: ReplayGroupInput,
    manner: &'a BulkArgs,
}

impl BulkJob<'_> {
    async fn run(mut self) -> CommandResult {
        let (session, manner) = (self.session, self.manner);
        let group = self.group().await?;
        let seen = self.send(true).await?;
        let BulkResult::Preview(preview) = &*seen else { return Err(unexpected()) };
        let count = preview.count;
        let about = if preview.count_is_exact { "" } else { "at least " };
        if manner.dry_run {
            return self.show(&seen, about);
        }
        if count == 0 {
            return Err(self.nothing(group.as_ref()));
        }
        let task = &self.task;
        if !manner.yes {
            sure(&format!("{} {about}{}{}?", capital(task.as_str()), letters(count), self.options()))?;
        }
        let begun = self.send(false).await?;
        let BulkResult::Started(operation) = &*begun else { return Err(unexpected()) };
        let id = operation.id.as_str();
        if manner.detach {
            return session.told(&begun, |_| {
                format!("{task} of {} started as {id}\n{}", letters(count), follow::hints(id))
            });
        }
        note(&format!("{task} of {} started as {id}", letters(count)));
        follow(session, id, false).await
    }

    /// The group of the filter, whose service the operation waits for. A key restricted to sources can't read groups.
    async fn group(&mut self) -> Result<Option<DeadLetterGroup>, CommandError> {
        let Some(group) = &self.many.filter.failure.group else { return Ok(None) };
        let read = self.session.hub.dead_letter_groups().get(group.as_str()).single_attempt().send().await;
        let group = match read {
            Ok(reply) => reply.into_data().group,
            Err(error) if error.status() == Some(403) => return Ok(None),
            Err(error) => return Err(self.session.failed(&error)),
        };
        self.many.filter.failure.service.get_or_insert_with(|| group.service.clone());
        Ok(Some(group))
    }

    async fn send(&self, dry_run: bool) -> Result<Reply<BulkResult>, CommandError> {
        self.session.send(self.manner.why.of(self.call(dry_run))).await
    }

    fn call(&self, dry_run: bool) -> ApiCall<BulkResult> {
        let (hub, filter) = (self.session.hub.dead_letters(), self.many.filter.clone());
        let max = self.manner.max;
        let options = BulkOptions { max, dry_run: Some(dry_run), reason: None };
        match &self.task {
            BulkTask::Replay => {
                let replay = ReplayGroupInput { options, ..self.plan.clone() };
                hub.replay_many(&ReplayManyInput { filter, replay })
            }
            BulkTask::Purge => {
                hub.purge_many(&PurgeInput { filter, max, force: Some(!dry_run), reason: None })
            }
            task => hub.move_many(task, &BulkInput { filter, options }),
        }
    }

    /// Prints a preview.
    fn show(&self, seen: &Reply<BulkResult>, about: &str) -> CommandResult {
        let out = &self.session.out;
        if out.json {
            return out.line(seen.text());
        }
        let BulkResult::Preview(preview) = &**seen else { return Err(unexpected()) };
        let found = letters(preview.count);
        out.text(&format!("{} would apply to {about}{found}; nothing was changed", self.task))?;
        if preview.unindexed > 0 {
            note(&format!("{} more are not indexed yet", preview.unindexed));
        }
        out.section("Sample", COLUMNS, &preview.sample)?;
        match self.task {
            BulkTask::Purge if preview.count > 0 => out.text("\n`--force` purges them; this can't be undone"),
            _ => Ok(()),
        }
    }

    /// The options of a replay in words.
    fn options(&self) -> String {
        if self.task != BulkTask::Replay {
            return String::new();
        }
        let mode = self.plan.mode.clone().unwrap_or_default();
        let rate = self.plan.rate_per_second.unwrap_or(RATE);
        let canary = match &self.plan.canary {
            None => "canary 1, 10, then the rest".to_owned(),
            Some(Canary::Stages(stages)) => {
                let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
                format!("canary {}, then the rest", stages.join(", "))
            }
            Some(Canary::Switch(_)) => "no canary".to_owned(),
        };
        format!(" (mode {mode}, at most {rate} per second, {canary})")
    }

    /// The error when nothing matches.
    fn nothing(&self, group: Option<&DeadLetterGroup>) -> CommandError {
        let task = &self.task;
        if let Some(DeadLetterGroup { counts, fingerprint, .. }) = group {
            let counts = [
                ("deleted", counts.deleted),
                ("delivered", counts.delivered),
                ("failedAgain", counts.failed_again),
                ("open", counts.open),
                ("parked", counts.parked),
                ("replaying", counts.replaying),
            ];
            let counts = counts.iter().filter(|(_, count)| *count > 0);
            let counts: Vec<String> = counts.map(|(state, count)| format!("{state}: {count}")).collect();
            let has = if counts.is_empty() { "it is empty".to_owned() } else { counts.join(", ") };
            return CommandError::new(REFUSED, format!("group {fingerprint} has nothing to {task}; {has}"))
                .and("`--standing parked` selects parked dead letters");
        }
        match self.many.named() {
            Some(count) => CommandError::new(
                REFUSED,
                format!("none of {} can be used for {task}", letters(count as u64)),
            )
            .and("`seawall dlq show ID` shows the state of each"),
            None => {
                CommandError::new(REFUSED, format!("nothing to {task}: no dead letter matches the filter"))
                    .and("`seawall dlq list` with the same filter shows all states")
            }
        }
    }
}

/// The error for a preview where an operation was expected, or the other way round.
fn unexpected() -> CommandError {
    CommandError::new(UNREACHABLE, "the response of the hub is not what was asked for")
        .and("is the hub's version different from this program's?")
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
