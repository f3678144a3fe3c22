//! Which dead letters: by name, or by what they have in common.

use clap::Args;
use seawall::Clock;
use seawall_hub_server::client::moment;
use serde_json::{Map, Value, json};

use crate::command::deliveries::REASONS;
use crate::failure::Failure;

/// Where a dead letter may stand.
const STANDINGS: [&str; 6] = ["open", "replaying", "delivered", "failedAgain", "parked", "deleted"];

/// What dead letters have in common.
#[derive(Args)]
pub(crate) struct Filter {
    /// For this service.
    #[arg(long)]
    service: Option<String>,
    /// Because of this rule.
    #[arg(long)]
    rule: Option<String>,
    /// The peer answered this last.
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(100..=999))]
    status: Option<u16>,
    /// Where they stand; several with commas.
    #[arg(long, value_delimiter = ',', value_parser = STANDINGS)]
    standing: Vec<String>,
    /// Of the group with this fingerprint.
    #[arg(long, value_name = "FP")]
    group: Option<String>,
    /// Because of the event with this id.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Given up since then: so long ago, like `2h`, or a time, like `2026-11-15T02:40:00Z`.
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<String>,
    /// Given up before then.
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<String>,
    /// With these words in the event, the errors, the answers or the names.
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

/// How long ago, or when. The clock is the one of this machine.
fn when(text: &str) -> Result<String, String> {
    match seawall::config::duration(text) {
        Ok(ago) => Clock::system()
            .wall()
            .checked_sub(ago)
            .map(moment)
            .ok_or_else(|| "that is before all time".to_owned()),
        // The hub reads it, and says what is wrong with it.
        Err(_) if text.len() > 4 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit) => {
            Ok(text.to_owned())
        }
        Err(_) => Err("say how long ago, like `2h`, or when, like `2026-11-15T02:40:00Z`".into()),
    }
}

impl Filter {
    /// Under the names that the API has. `reason` stands apart: it is also the name of why somebody does something.
    pub(crate) fn pairs(&self, reason: Option<&str>) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("service", self.service.clone()),
            ("rule", self.rule.clone()),
            ("reason", reason.map(ToOwned::to_owned)),
            ("status", self.status.map(|status| status.to_string())),
            ("standing", Some(self.standing.join(",")).filter(|all| !all.is_empty())),
            ("group", self.group.clone()),
            ("event", self.event.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
            ("q", self.search.clone()),
        ]
    }
}

/// Those that something is done to.
#[derive(Args)]
pub(crate) struct Choice {
    /// These; or say what they have in common with the options.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// Given up for this reason.
    #[arg(long, value_name = "REASON", value_parser = REASONS)]
    cause: Option<String>,
    /// All that there are.
    #[arg(long)]
    all: bool,
}

/// What was chosen.
pub(super) enum Chosen {
    One(String),
    Many(Many),
}

/// A filter for many.
pub(super) struct Many {
    pub(super) filter: Map<String, Value>,
}

impl Many {
    /// The group that it is about, if it is about one.
    pub(super) fn group(&self) -> Option<&str> {
        self.filter.get("group").and_then(Value::as_str)
    }

    /// How many were named one by one.
    pub(super) fn named(&self) -> Option<usize> {
        self.filter.get("ids").and_then(Value::as_array).map(Vec::len)
    }
}

impl Choice {
    /// One that is named, or a filter. What is no choice, or two at once, is refused.
    pub(super) fn chosen(&self) -> Result<Chosen, Failure> {
        let said = self.filter.pairs(self.cause.as_deref());
        let filter: Map<String, Value> =
            said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
        if let Some(group) = self.ids.iter().find(|id| id.starts_with("grp_")) {
            let word = format!(
                "`{group}` is a group and no dead letter; for all that is in it say `--group {group}`"
            );
            return Err(Failure::usage(word));
        }
        match (&self.ids[..], filter.is_empty(), self.all) {
            ([], true, false) => Err(Failure::usage("which? Nothing is chosen").and(
                "name ids, or `--group FP`, or filters like `--service billing --since 2h`, or `--all`",
            )),
            ([], true, true) | ([], false, false) => Ok(Chosen::Many(Many { filter })),
            ([], false, true) => {
                Err(Failure::usage("`--all` is everything, and the filters are less; leave one of them out"))
            }
            (_, false, _) | (_, _, true) => {
                Err(Failure::usage("both ids and filters: the ids say which already; leave one of them out"))
            }
            ([one], ..) => Ok(Chosen::One(one.clone())),
            (ids, ..) => Ok(Chosen::Many(by_ids(ids))),
        }
    }

    /// The same, where one is no different from many.
    pub(super) fn many(&self) -> Result<Many, Failure> {
        Ok(match self.chosen()? {
            Chosen::One(id) => by_ids(&[id]),
            Chosen::Many(many) => many,
        })
    }
}

pub(super) fn by_ids(ids: &[String]) -> Many {
    Many { filter: Map::from_iter([("ids".to_owned(), json!(ids))]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a time is so long ago or a date; what is neither is told what it looks like.
    #[test]
    fn hub_10_a_time_is_long_ago_or_a_date() {
        assert_eq!(when("2026-11-15T02:40:00Z").as_deref(), Ok("2026-11-15T02:40:00Z"));
        let (early, late) = (when("2h").unwrap(), when("1h").unwrap());
        assert!(early < late && late.ends_with('Z'), "{early} {late}");
        for wrong in ["yesterday", "", "2", "now"] {
            assert!(when(wrong).unwrap_err().contains("like `2h`"), "{wrong}");
        }
    }
}
