//! Which dead letters: how those that a filter takes are found.
//!
//! # How are a few found among many?
//! Service, rule, reason and status are the group's, and groups are few. So these are asked of the groups first, and then each
//! group has an index with its dead letters in order. Words have an index of their own. Only what is left, a time or a state, is
//! asked of each row, and that row is narrow.

use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::slug::Slug;

use super::events::stored_all;
use super::limit;
use super::values::Conditions;
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{ReadError, small};
use crate::postgres::text::stored;
use crate::postgres::words;
use crate::record::fingerprint_to_number;

/// The number of groups up to which each is searched by its own index.
const GROUPS_MERGED: usize = 16;

/// The number of matches of a full-text search up to which all of them are looked at.
const MATCHES_MERGED: usize = 2_000;

/// The end of the list that comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanDirection {
    Newest,
    Oldest,
}

/// A search for dead letters.
pub(super) struct LetterSearch {
    route: SearchRoute,
    /// The conditions on each row `l`. The position is `$1` and the limit `$2`.
    conditions: Conditions,
}

/// Where the dead letters of a search are found. The texts are placeholders of values.
enum SearchRoute {
    /// Nothing can match.
    Nothing,
    /// All rows, one after the other.
    All,
    /// All rows that have words. Many have those that are looked for.
    Words(String),
    /// Rows in each of these groups and states.
    Groups(String, String),
}

impl LetterSearch {
    pub(super) async fn new(session: &Session, filter: &LetterFilter) -> Result<Self, ReadError> {
        let mut search = LetterSearch { route: SearchRoute::All, conditions: Conditions::behind(2) };
        let conditions = &mut search.conditions;
        conditions.ask("l.at >= ?", filter.since.map(|since| since.0));
        conditions.ask("l.at < ?", filter.before.map(|before| before.0));
        conditions.ask("l.delivery <= ?", filter.up_to.map(u64::cast_signed));
        conditions.ask(
            "(SELECT e.source FROM deliveries d JOIN events e ON e.number = d.event WHERE d.number = l.delivery) = ANY (?)",
            filter.within.sources.as_ref().map(|sources| stored_all(sources)),
        );
        let named = named(session, filter).await?;
        let query = match filter.text.as_deref().map(words::query) {
            Some(None) => return Ok(search.without_result()),
            query => query.flatten(),
        };
        let matches = match &query {
            Some(query) => all_matches(session, query).await?,
            None => None,
        };
        let by_words = query.filter(|_| matches.is_none());
        let is_narrow = named.is_some() || matches.is_some();
        conditions.ask("l.delivery = ANY (?)", named);
        conditions.ask("l.delivery = ANY (?)", matches);
        let states = wanted_states(filter);
        let groups = groups_of(session, filter, &states).await?;
        let states: Vec<i16> = states.into_iter().map(small).collect();
        match (groups, by_words) {
            (Some(groups), _) if groups.is_empty() => return Ok(search.without_result()),
            (Some(groups), None) if groups.len() <= GROUPS_MERGED && !is_narrow => {
                search.route = SearchRoute::Groups(conditions.add(groups), conditions.add(states));
                return Ok(search);
            }
            (groups, query) => {
                conditions.ask("l.grouping = ANY (?)", groups);
                if let Some(query) = query {
                    search.route = SearchRoute::Words(conditions.add(query));
                }
            }
        }
        conditions.ask("l.standing = ANY (?)", Some(states));
        Ok(search)
    }

    fn without_result(self) -> Self {
        LetterSearch { route: SearchRoute::Nothing, ..self }
    }

    /// Returns the query for the matches beyond `$1`, at most `$2` of them; `None` if nothing can match.
    pub(super) fn sql(&self, first: ScanDirection) -> Option<String> {
        let (beyond, order) = match first {
            ScanDirection::Newest => ("<", "DESC"),
            ScanDirection::Oldest => (">", "ASC"),
        };
        let asked = self.conditions.sql();
        match &self.route {
            SearchRoute::Nothing => None,
            SearchRoute::All => Some(format!(
                "SELECT l.delivery FROM dead_letters l WHERE l.delivery {beyond} $1{asked} ORDER BY l.delivery {order} LIMIT $2"
            )),
            SearchRoute::Words(query) => Some(format!(
                "SELECT l.delivery FROM (SELECT delivery, words FROM letter_words WHERE delivery {beyond} $1
                     ORDER BY delivery {order} OFFSET 0) w
                 JOIN dead_letters l ON l.delivery = w.delivery
                 WHERE w.words @@ {query}::text::tsquery{asked} ORDER BY w.delivery {order} LIMIT $2"
            )),
            SearchRoute::Groups(groups, states) => Some(format!(
                "SELECT found.delivery FROM unnest({groups}::bigint[]) g (number), unnest({states}::smallint[]) s (number),
                 LATERAL (SELECT l.delivery FROM dead_letters l
                     WHERE l.grouping = g.number AND l.standing = s.number AND l.delivery {beyond} $1{asked}
                     ORDER BY l.delivery {order} LIMIT $2) found
                 ORDER BY found.delivery {order} LIMIT $2"
            )),
        }
    }

    /// Returns the numbers of the matches, behind a position.
    pub(super) async fn numbers(
        mut self,
        session: &Session,
        first: ScanDirection,
        behind: i64,
        most: usize,
    ) -> Result<Vec<i64>, ReadError> {
        let Some(sql) = self.sql(first) else { return Ok(Vec::new()) };
        self.conditions.set(&[behind, limit(most)]);
        let rows = session.rows(&sql, &self.conditions.params()).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// Counts the matches, at most up to a limit.
    pub(super) async fn count(mut self, session: &Session, most: u64) -> Result<u64, ReadError> {
        let Some(sql) = self.sql(ScanDirection::Newest) else { return Ok(0) };
        self.conditions.set(&[i64::MAX, i64::try_from(most).unwrap_or(i64::MAX)]);
        let sql = format!("SELECT count(*) FROM ({sql}) found");
        let count = session.find(&sql, &self.conditions.params()).await?;
        let count: i64 = count.map_or(Ok(0), |row| row.try_get(0))?;
        Ok(count.cast_unsigned())
    }
}

/// Returns the dead letters with these words by their index; `None` if there are so many that the newest or oldest of them are
/// sooner found one after the other.
async fn all_matches(session: &Session, query: &str) -> Result<Option<Vec<i64>>, ReadError> {
    let sql = "SELECT delivery FROM letter_words WHERE words @@ $1::text::tsquery LIMIT $2";
    let rows = session.rows(sql, &[&query, &limit(MATCHES_MERGED + 1)]).await?;
    let numbers = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok((rows.len() <= MATCHES_MERGED).then_some(numbers))
}

/// Returns the states that a filter takes.
fn wanted_states(filter: &LetterFilter) -> Vec<LetterState> {
    match &filter.states[..] {
        [] => LetterState::ALL.into_iter().filter(|state| *state != LetterState::Deleted).collect(),
        states => LetterState::ALL.into_iter().filter(|state| states.contains(state)).collect(),
    }
}

/// Returns the numbers of the deliveries that a filter names, by themselves or by their event; `None` if it names none. An id of
/// another era has a number that somebody else may have here.
async fn named(session: &Session, filter: &LetterFilter) -> Result<Option<Vec<i64>>, ReadError> {
    if filter.ids.is_empty() && filter.event.is_none() {
        return Ok(None);
    }
    let mut conditions = Conditions::default();
    if !filter.ids.is_empty() {
        let numbers: Vec<i64> = filter.ids.iter().map(|id| id.number.cast_signed()).collect();
        let eras: Vec<i64> = filter.ids.iter().map(|id| id.database.cast_signed()).collect();
        let (numbers, eras) = (conditions.add(numbers), conditions.add(eras));
        conditions
            .push(format!("(number, era) IN (SELECT * FROM unnest({numbers}::bigint[], {eras}::bigint[]))"));
    }
    let event = filter.event.as_deref().map(|event| stored(event).into_owned());
    conditions.ask("event IN (SELECT e.number FROM events e WHERE e.id = ?)", event);
    let sql = format!("SELECT number FROM deliveries WHERE true{}", conditions.sql());
    let rows = session.rows(&sql, &conditions.params()).await?;
    Ok(Some(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?))
}

/// Returns the groups with the dead letters that a filter takes; `None` if all of them have to be looked at, because the filter
/// names no groups and many have some in the states.
async fn groups_of(
    session: &Session,
    filter: &LetterFilter,
    states: &[LetterState],
) -> Result<Option<Vec<i64>>, ReadError> {
    let mut conditions = Conditions::default();
    let name = |slug: &Option<Slug>| slug.as_ref().map(|slug| slug.as_str().to_owned());
    let names = |slugs: &[Slug]| slugs.iter().map(|slug| slug.as_str().to_owned()).collect::<Vec<_>>();
    conditions.ask("service = ?", name(&filter.service));
    conditions.ask("rule = ?", name(&filter.rule));
    conditions.ask("reason = ?", filter.reason.map(small));
    conditions.ask("status = ?", filter.status.map(i32::from));
    conditions.ask("fingerprint = ?", filter.group.map(fingerprint_to_number));
    conditions.ask("service = ANY (?)", filter.within.services.as_deref().map(names));
    conditions.ask("service <> ALL (?)", (!filter.except.is_empty()).then(|| names(&filter.except)));
    let most = if conditions.is_empty() { limit(GROUPS_MERGED + 1) } else { i64::MAX };
    conditions
        .push(format!("({})", states.iter().map(|state| has_some(*state)).collect::<Vec<_>>().join(" OR ")));
    let most_place = conditions.add(most);
    let sql = format!("SELECT number FROM letter_groups WHERE true{} LIMIT {most_place}", conditions.sql());
    let rows = session.rows(&sql, &conditions.params()).await?;
    let are_all = limit(rows.len()) < most;
    let numbers = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(are_all.then_some(numbers))
}

/// Returns the condition on a group that it has dead letters in this state.
const fn has_some(state: LetterState) -> &'static str {
    match state {
        LetterState::Open => "open > 0",
        LetterState::Replaying => "replaying > 0",
        LetterState::Delivered => "delivered > 0",
        LetterState::FailedAgain => "failed_again > 0",
        LetterState::Parked => "parked > 0",
        LetterState::Deleted => "deleted > 0",
    }
}
