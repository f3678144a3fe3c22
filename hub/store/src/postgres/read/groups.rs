//! Groups of dead letters.

use seawall_hub_core::domain::dead_letter::{
    FailureSignature, Fingerprint, GroupFilter, LetterCounts, LetterGroup,
};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest};

use super::values::Conditions;
use super::{limit, read_all, read_one};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::{self, Columns, ReadError, small};
use crate::record::{UnreadableRow, fingerprint_from_number, fingerprint_to_number};

/// The columns of the group `g`, and its sample: the newest open dead letter, or else the newest of all.
const GROUP: &str =
    "g.number, g.fingerprint, g.service, g.rule, g.reason, g.status, g.message, g.state, g.note, g.first, g.last,
     g.reopened, g.open, g.replaying, g.delivered, g.failed_again, g.parked, g.deleted, sample.number, sample.era";

/// Where [`GROUP`] is found. The states of dead letters are in the order of `LetterState::ALL`.
const GROUP_FROM: &str = "letter_groups g LEFT JOIN LATERAL (
         SELECT d.number, d.era FROM (
             SELECT l.delivery FROM dead_letters l WHERE l.grouping = g.number AND l.standing = CASE
                 WHEN g.open > 0 THEN 0 WHEN g.replaying > 0 THEN 1 WHEN g.delivered > 0 THEN 2
                 WHEN g.failed_again > 0 THEN 3 WHEN g.parked > 0 THEN 4 ELSE 5 END
             ORDER BY l.delivery DESC LIMIT 1) newest
         JOIN deliveries d ON d.number = newest.delivery) sample ON true";

/// Reads the columns of [`GROUP`].
fn group_row(columns: &mut Columns<'_>) -> Result<LetterGroup, UnreadableRow> {
    columns.skip();
    Ok(LetterGroup {
        fingerprint: fingerprint_from_number(columns.integer()?),
        failure: FailureSignature {
            service: columns.slug()?,
            rule: columns.slug()?,
            reason: columns.numbered()?,
            status: columns.count_or_null()?,
            message: columns.text()?,
        },
        state: columns.numbered()?,
        note: columns.text_or_null()?,
        first: columns.time()?,
        last: columns.time()?,
        reopened: columns.count()?,
        counts: {
            let mut counts = LetterCounts::default();
            for count in &mut counts.0 {
                *count = columns.number()?;
            }
            counts
        },
        sample: rows::delivery_id_or_null(columns)?,
    })
}

/// Lists groups. There are few, so the position of a page is the number of groups before it.
pub(in crate::postgres) async fn groups(
    session: &Session,
    filter: &GroupFilter,
    page: PageRequest,
) -> Result<Page<LetterGroup>, ReadError> {
    let mut conditions = Conditions::default();
    let from = page.from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
    // One more tells whether there is another page.
    let (skipped, most) = (conditions.add(limit(from)), conditions.add(limit(page.size.saturating_add(1))));
    let name = |slug: &Option<Slug>| slug.as_ref().map(Slug::to_string);
    conditions.ask("service = ?", name(&filter.service));
    conditions.ask("rule = ?", name(&filter.rule));
    let states: Vec<i16> = filter.states.iter().copied().map(small).collect();
    conditions.ask("state = ANY (?)", (!states.is_empty()).then_some(states));
    let services = filter.services.as_ref();
    let services = services.map(|services| services.iter().map(Slug::to_string).collect::<Vec<_>>());
    conditions.ask("service = ANY (?)", services);
    let sql = format!(
        "WITH page AS MATERIALIZED (SELECT * FROM letter_groups WHERE true{} ORDER BY last DESC, number DESC
             OFFSET {skipped} LIMIT {most})
         SELECT {GROUP} FROM {} ORDER BY g.last DESC, g.number DESC",
        conditions.sql(),
        GROUP_FROM.replacen("letter_groups", "page", 1)
    );
    let mut items = read_all("letter_groups", &session.rows(&sql, &conditions.params()).await?, group_row)?;
    let more = items.len() > page.size;
    items.truncate(page.size);
    let next = more.then(|| u64::try_from(from + items.len()).unwrap_or(u64::MAX));
    Ok(Page { items, next })
}

pub(in crate::postgres) async fn group(
    session: &Session,
    fingerprint: Fingerprint,
) -> Result<Option<LetterGroup>, ReadError> {
    let sql = format!("SELECT {GROUP} FROM {GROUP_FROM} WHERE g.fingerprint = $1");
    let found = session.find(&sql, &[&fingerprint_to_number(fingerprint)]).await?;
    read_one("letter_groups", found.as_ref(), group_row)
}
