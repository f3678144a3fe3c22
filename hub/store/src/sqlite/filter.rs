//! The search for dead letters.
//!
//! # How are a few found among many?
//! Service, rule, reason and status belong to the group, and groups are few. So the search reads the groups first, and then the
//! index that each group has of its dead letters. Words have an index of their own. Only times and states are read of each row,
//! and that row is narrow.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};
use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::slug::Slug;
use serde_json::{Value, json};

use crate::record::{StoredNumber, fingerprint_to_number};
use crate::search_text::pieces;
use crate::sqlite::read::database;

/// The number of groups up to which each is searched by its own index.
const GROUPS_MERGED: usize = 16;

/// The end of the list that comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortOrder {
    Newest,
    Oldest,
}

/// A search for dead letters.
pub(crate) struct Search {
    way: SearchPlan,
    /// The conditions on each row, with `?` for each value.
    conditions: Vec<String>,
    values: Vec<Sql>,
}

enum SearchPlan {
    /// Nothing can match.
    Nothing,
    /// All rows, one after the other.
    All,
    /// Rows by full-text search.
    Words(String),
    /// Rows in each of these groups and states.
    Groups(Vec<i64>, Vec<i64>),
}

impl Search {
    pub(crate) fn new(connection: &Connection, filter: &LetterFilter) -> rusqlite::Result<Self> {
        let states: Vec<i64> = match &filter.states[..] {
            [] => LetterState::ALL.into_iter().filter(|one| *one != LetterState::Deleted).collect(),
            asked => asked.to_vec(),
        }
        .into_iter()
        .map(LetterState::to_number)
        .collect();
        let mut search = Search { way: SearchPlan::All, conditions: Vec::new(), values: Vec::new() };
        search.ask("l.at >= ?", filter.since.map(|since| Sql::from(since.0)));
        search.ask("l.at < ?", filter.before.map(|before| Sql::from(before.0)));
        search.ask("l.delivery <= ?", filter.up_to.map(|number| Sql::from(number.cast_signed())));
        // A name of another database has a number that somebody else has here.
        let database = database(connection)?;
        let ids = (!filter.ids.is_empty()).then(|| {
            let ours = filter.ids.iter().filter(|id| id.database == database);
            let ids: Vec<Value> = ours.map(|id| id.number.into()).collect();
            Sql::from(Value::from(ids).to_string())
        });
        let narrow = ids.is_some() || filter.event.is_some();
        search.ask("l.delivery IN (SELECT value FROM json_each(?))", ids);
        search.ask(
            "l.delivery IN (SELECT number FROM deliveries WHERE event IN (SELECT number FROM events WHERE id = ?))",
            filter.event.clone().map(Sql::from),
        );
        let sources = filter.within.sources.as_ref().map(|sources| Sql::from(json!(sources).to_string()));
        search.ask(
            "EXISTS (SELECT 1 FROM deliveries d JOIN events e ON e.number = d.event WHERE d.number = l.delivery
              AND e.source IN (SELECT value FROM json_each(?)))",
            sources,
        );
        let groups = groups_of(connection, filter)?;
        if groups.as_ref().is_some_and(Vec::is_empty) {
            search.way = SearchPlan::Nothing;
            return Ok(search);
        }
        let words = match filter.text.as_deref().map(expression) {
            Some(None) => {
                search.way = SearchPlan::Nothing;
                return Ok(search);
            }
            words => words.flatten(),
        };
        match (groups, words) {
            (Some(groups), None) if groups.len() <= GROUPS_MERGED && !narrow => {
                search.way = SearchPlan::Groups(groups, states);
                return Ok(search);
            }
            (groups, words) => {
                let groups = groups.map(|groups| Sql::from(json!(groups).to_string()));
                search.ask("l.grouping IN (SELECT value FROM json_each(?))", groups);
                search.way = words.map_or(SearchPlan::All, SearchPlan::Words);
            }
        }
        let states = Sql::from(json!(states).to_string());
        search.ask("l.standing IN (SELECT value FROM json_each(?))", Some(states));
        Ok(search)
    }

    fn ask(&mut self, condition: &str, value: Option<Sql>) {
        if let Some(value) = value {
            self.conditions.push(condition.into());
            self.values.push(value);
        }
    }

    /// Returns the numbers of the matches, behind a position.
    pub(crate) fn numbers(
        &self,
        connection: &Connection,
        first: SortOrder,
        behind: i64,
        limit: usize,
    ) -> rusqlite::Result<Vec<i64>> {
        let (beyond, order) = match first {
            SortOrder::Newest => ("<", "DESC"),
            SortOrder::Oldest => (">", "ASC"),
        };
        let asked: String = self.conditions.iter().map(|condition| format!(" AND {condition}")).collect();
        let limit_row = i64::try_from(limit).unwrap_or(i64::MAX);
        let run = |sql: &str, before: Vec<Sql>| -> rusqlite::Result<Vec<i64>> {
            let values = before.into_iter().chain(self.values.iter().cloned()).chain([Sql::from(limit_row)]);
            connection.prepare_cached(sql)?.query_map(params_from_iter(values), |row| row.get(0))?.collect()
        };
        match &self.way {
            SearchPlan::Nothing => Ok(Vec::new()),
            SearchPlan::All => run(
                &format!(
                    "SELECT l.delivery FROM dead_letters l NOT INDEXED WHERE l.delivery {beyond} ?{asked}
                     ORDER BY l.delivery {order} LIMIT ?"
                ),
                vec![behind.into()],
            ),
            SearchPlan::Words(words) => run(
                &format!(
                    "SELECT l.delivery FROM letter_words CROSS JOIN dead_letters l ON l.delivery = letter_words.rowid
                     WHERE letter_words MATCH ? AND letter_words.rowid {beyond} ?{asked}
                     ORDER BY letter_words.rowid {order} LIMIT ?"
                ),
                vec![words.clone().into(), behind.into()],
            ),
            SearchPlan::Groups(groups, states) => {
                let sql = format!(
                    "SELECT l.delivery FROM dead_letters l INDEXED BY dead_letters_of_group
                     WHERE l.grouping = ? AND l.standing = ? AND l.delivery {beyond} ?{asked}
                     ORDER BY l.delivery {order} LIMIT ?"
                );
                let mut all = Vec::new();
                for group in groups {
                    for state in states {
                        all.extend(run(&sql, vec![(*group).into(), (*state).into(), behind.into()])?);
                    }
                }
                all.sort_unstable();
                if first == SortOrder::Newest {
                    all.reverse();
                }
                all.truncate(limit);
                Ok(all)
            }
        }
    }

    /// Counts the matches, at most up to a limit.
    pub(crate) fn count(&self, connection: &Connection, limit: u64) -> rusqlite::Result<u64> {
        let asked: String = self.conditions.iter().map(|condition| format!(" AND {condition}")).collect();
        let run = |from: &str, before: Vec<Sql>| -> rusqlite::Result<u64> {
            let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {from}{asked} LIMIT ?)");
            let values =
                before.into_iter().chain(self.values.iter().cloned()).chain([limit.cast_signed().into()]);
            let mut count = connection.prepare_cached(&sql)?;
            count.query_row(params_from_iter(values), |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
        };
        let found = match &self.way {
            SearchPlan::Nothing => 0,
            SearchPlan::All => run("dead_letters l NOT INDEXED WHERE 1 = 1", Vec::new())?,
            SearchPlan::Words(words) => run(
                "letter_words CROSS JOIN dead_letters l ON l.delivery = letter_words.rowid WHERE letter_words MATCH ?",
                vec![words.clone().into()],
            )?,
            SearchPlan::Groups(groups, states) => {
                let mut all = 0;
                for group in groups {
                    for state in states {
                        all += run(
                            "dead_letters l INDEXED BY dead_letters_of_group WHERE l.grouping = ? AND l.standing = ?",
                            vec![(*group).into(), (*state).into()],
                        )?;
                    }
                }
                all
            }
        };
        Ok(found.min(limit))
    }
}

/// Returns the row numbers of the groups that a filter names; `None` if it names none.
fn groups_of(connection: &Connection, filter: &LetterFilter) -> rusqlite::Result<Option<Vec<i64>>> {
    let (mut asked, mut values): (Vec<&str>, Vec<Sql>) = (Vec::new(), Vec::new());
    let mut ask = |condition, value: Option<Sql>| {
        if let Some(value) = value {
            asked.push(condition);
            values.push(value);
        }
    };
    let name = |slug: &Option<Slug>| slug.as_ref().map(|slug| Sql::from(slug.as_str().to_owned()));
    ask("service = ?", name(&filter.service));
    ask("rule = ?", name(&filter.rule));
    ask("reason = ?", filter.reason.map(|reason| reason.to_number().into()));
    ask("status = ?", filter.status.map(|status| i64::from(status).into()));
    ask("fingerprint = ?", filter.group.map(|group| fingerprint_to_number(group).into()));
    let services = filter.within.services.as_ref().map(|services| {
        let names: Vec<&str> = services.iter().map(Slug::as_str).collect();
        Sql::from(json!(names).to_string())
    });
    ask("service IN (SELECT value FROM json_each(?))", services);
    let except = (!filter.except.is_empty()).then(|| {
        let names: Vec<&str> = filter.except.iter().map(Slug::as_str).collect();
        Sql::from(json!(names).to_string())
    });
    ask("service NOT IN (SELECT value FROM json_each(?))", except);
    if asked.is_empty() {
        return Ok(None);
    }
    let sql = format!("SELECT number FROM letter_groups WHERE {}", asked.join(" AND "));
    let mut found = connection.prepare_cached(&sql)?;
    found.query_map(params_from_iter(values), |row| row.get(0))?.collect::<rusqlite::Result<_>>().map(Some)
}

/// Converts a search text to an expression of the index: every word must occur, quoted words in this order, and the last word may
/// be a prefix. Returns `None` if there is no word. Nothing in the text is an operator.
pub(crate) fn expression(text: &str) -> Option<String> {
    let pieces = pieces(text);
    let last = pieces.len().checked_sub(1)?;
    let quoted = pieces.iter().enumerate().map(|(place, (piece, open))| {
        let more = if place == last && *open { " *" } else { "" };
        format!("\"{}\"{more}", piece.replace(['"', '\0'], " "))
    });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-6, PRM-8: whatever is typed is words and nothing else.
    #[test]
    fn hub_6_what_is_typed_is_words() {
        let words = |text| expression(text).unwrap_or_default();
        assert_eq!(words("no stock"), r#""no" "stock" *"#);
        assert_eq!(words(r#"say "no stock""#), r#""say" "no stock""#);
        assert_eq!(words("A-7731"), r#""A-7731" *"#);
        assert_eq!(words("a OR NOT b*"), r#""a" "OR" "NOT" "b*" *"#);
        assert_eq!(words(r#""open quote"#), r#""open quote""#);
        assert_eq!(expression(" *\" -- "), None);
    }
}
