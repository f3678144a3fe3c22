//! The selection of dead letters: by id or by filter.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use seawall::Clock;
use seawall_client::api::{DeadLetterFilter, FailureFilter, LetterQuery};
use seawall_dist::Millis;

use crate::command::deliveries::REASONS;
use crate::error::CommandError;
use crate::input::whole;

/// The states of a dead letter.
const STANDINGS: [&str; 6] = ["open", "replaying", "delivered", "failedAgain", "parked", "deleted"];

/// A filter for dead letters.
#[derive(Args)]
pub(crate) struct LetterFilterArgs {
    /// Only those for this service.
    #[arg(long)]
    service: Option<String>,
    /// Only those of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// Only those whose last response had this status.
    #[arg(long, value_name = "CODE", value_parser = whole::<u16>(100..=999))]
    status: Option<u16>,
    /// Only those in this state; separate several with commas.
    #[arg(long, value_delimiter = ',', value_parser = STANDINGS)]
    standing: Vec<String>,
    /// Only those of the group with this fingerprint.
    #[arg(long, value_name = "FP")]
    group: Option<String>,
    /// Only those of the event with this id.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only those dead-lettered since: a duration ago such as `2h`, or a time such as `2026-11-15T02:40:00Z`.
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<TimeArg>,
    /// Only those dead-lettered before: a duration ago or a time.
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<TimeArg>,
    /// Only those with these words in the event, errors, responses or names.
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

/// A point in time on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TimeArg {
    Ago(Duration),
    /// A time as the hub reads it.
    At(String),
}

impl TimeArg {
    /// The time by this clock, as the hub reads it. What is older than the clock is at its beginning.
    fn by(&self, clock: &Clock) -> String {
        match self {
            TimeArg::Ago(ago) => moment(clock.wall().checked_sub(*ago).unwrap_or(UNIX_EPOCH)),
            TimeArg::At(time) => time.clone(),
        }
    }
}

/// Parses a duration ago or a time.
fn when(text: &str) -> Result<TimeArg, String> {
    match seawall::config::duration(text) {
        Ok(ago) => Ok(TimeArg::Ago(ago)),
        // The hub reads it, and says what is wrong with it.
        Err(_) if text.len() > 4 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit) => {
            Ok(TimeArg::At(text.to_owned()))
        }
        Err(_) => Err("must be a duration ago such as `2h`, or a time such as `2026-11-15T02:40:00Z`".into()),
    }
}

/// A point in time as the hub reads it: `2026-11-15T12:00:00.250Z`.
fn moment(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_string()
}

impl LetterFilterArgs {
    /// The query of a list. `reason` is an argument, because the option of that name means the reason for a change elsewhere.
    pub(super) fn query(&self, clock: &Clock, reason: Option<&str>) -> LetterQuery {
        LetterQuery {
            failure: FailureFilter {
                service: self.service.as_deref().map(Into::into),
                rule: self.rule.as_deref().map(Into::into),
                reason: reason.map(Into::into),
                status: self.status,
                group: self.group.as_deref().map(Into::into),
                replayed: None,
            },
            standing: Some(self.standing.join(",")).filter(|all| !all.is_empty()),
            event: self.event.clone(),
            since: self.since.as_ref().map(|time| time.by(clock).as_str().into()),
            until: self.until.as_ref().map(|time| time.by(clock).as_str().into()),
            q: self.search.clone(),
        }
    }
}

/// The dead letters that a command applies to.
#[derive(Args)]
pub(crate) struct LetterSelection {
    /// Dead letter ids; or select with the options.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: LetterFilterArgs,
    /// Only those dead-lettered for this reason.
    #[arg(long, value_name = "REASON", value_parser = REASONS)]
    cause: Option<String>,
    /// Select all dead letters.
    #[arg(long)]
    all: bool,
}

/// The selected dead letters.
pub(super) enum SelectedLetters {
    One(String),
    Many(Box<BulkSelection>),
}

/// A filter for a bulk operation.
pub(super) struct BulkSelection {
    pub(super) filter: DeadLetterFilter,
}

impl BulkSelection {
    /// The number of ids, if the selection is by id.
    pub(super) fn named(&self) -> Option<usize> {
        self.filter.ids.as_ref().map(Vec::len)
    }
}

impl LetterSelection {
    /// One id or a filter. No selection and contradictory selections are errors.
    pub(super) fn chosen(&self, clock: &Clock) -> Result<SelectedLetters, CommandError> {
        let filter = DeadLetterFilter::from(self.filter.query(clock, self.cause.as_deref()));
        if let Some(group) = self.ids.iter().find(|id| id.starts_with("grp_")) {
            let word = format!(
                "`{group}` is a group, not a dead letter; select the whole group with `--group {group}`"
            );
            return Err(CommandError::usage(word));
        }
        match (&self.ids[..], filter == DeadLetterFilter::default(), self.all) {
            ([], true, false) => Err(CommandError::usage("no dead letters selected")
                .and("pass ids, `--group FP`, filters such as `--service billing --since 2h`, or `--all`")),
            ([], true, true) | ([], false, false) => {
                Ok(SelectedLetters::Many(Box::new(BulkSelection { filter })))
            }
            ([], false, true) => Err(CommandError::usage("`--all` can't be combined with filters")),
            (_, false, _) | (_, _, true) => {
                Err(CommandError::usage("ids can't be combined with filters or `--all`"))
            }
            ([one], ..) => Ok(SelectedLetters::One(one.clone())),
            (ids, ..) => Ok(SelectedLetters::Many(Box::new(by_ids(ids)))),
        }
    }

    /// The same, with one id as a filter too.
    pub(super) fn many(&self, clock: &Clock) -> Result<BulkSelection, CommandError> {
        Ok(match self.chosen(clock)? {
            SelectedLetters::One(id) => by_ids(&[id]),
            SelectedLetters::Many(many) => *many,
        })
    }
}

pub(super) fn by_ids(ids: &[String]) -> BulkSelection {
    let ids = ids.iter().map(|id| id.as_str().into()).collect();
    BulkSelection { filter: DeadLetterFilter { ids: Some(ids), ..DeadLetterFilter::default() } }
}

#[cfg(test)]
mod tests {
    use seawall::millis;

    use super::*;

    /// HUB-10: a point in time is written as the hub reads it.
    #[test]
    fn hub_10_a_moment_is_written_as_the_hub_reads_it() {
        assert_eq!(moment(UNIX_EPOCH + millis(1_794_744_000_250)), "2026-11-15T12:00:00.250Z");
    }

    /// HUB-10: a time is a duration ago or a date; for anything else the error shows both forms.
    #[test]
    fn hub_10_a_time_is_long_ago_or_a_date() {
        let clock = Clock::system();
        let by_clock = |text: &str| when(text).unwrap().by(&clock);
        assert_eq!(by_clock("2026-11-15T02:40:00Z"), "2026-11-15T02:40:00Z");
        let (early, late) = (by_clock("2h"), by_clock("1h"));
        assert!(early < late && late.ends_with('Z'), "{early} {late}");
        for wrong in ["yesterday", "", "2", "now"] {
            assert!(when(wrong).unwrap_err().contains("such as `2h`"), "{wrong}");
        }
    }
}
