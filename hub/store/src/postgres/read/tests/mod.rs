//! Every query reads a bounded number of rows, however many there are. The plans say so, not the clock.

mod plans;

use std::future::Future;

use seawall_hub_core::domain::dead_letter::{
    Fingerprint, GroupFilter, LetterFilter, LetterState, Visibility,
};
use seawall_hub_core::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::operation::OperationId;
use seawall_hub_core::domain::retention::Retention;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    DeliveryFilter, DeliverySelector, EventFilter, IncidentFilter, PageRequest,
};

use self::plans::Explained;
use super::*;

const PAGE: PageRequest = PageRequest { from: None, size: 50 };
/// The era of the deliveries in `fill.sql`.
const ERA: u64 = 7;

fn slug(name: &str) -> Slug {
    Slug::new(name).unwrap()
}

/// Fails if a query reads more rows than this, or reads a large table from its beginning to its end.
async fn reads_at_most<T, E: std::fmt::Display>(
    most: u64,
    what: &str,
    explained: &Explained,
    query: impl Future<Output = Result<T, E>>,
) -> T {
    explained.clear();
    let answer = query.await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let (read, plans) = (explained.rows_read(), explained.plans());
    assert!(!plans.is_empty(), "{what} has no plan");
    assert!(read <= most, "{what} reads {read} rows, and may read {most}:\n{plans}");
    let whole = explained.tables_read_whole();
    assert!(whole.iter().all(|table| table == "letter_groups"), "{what} reads {whole:?} whole:\n{plans}");
    answer
}

/// HUB-5, PRM-9: pages of deliveries stay as fast as they are when there are many, whatever is asked for.
#[tokio::test]
async fn hub_5_pages_of_deliveries_read_few_rows() {
    let (session, explained) = plans::session().await;
    let list = async |most, what: &str, filter: DeliveryFilter, page| {
        reads_at_most(most, what, &explained, deliveries::deliveries(&session, &filter, page)).await
    };
    let any = DeliveryFilter::default();
    let all = list(300, "a first page", any.clone(), PAGE).await;
    assert_eq!(all.items.len(), 50);
    assert_eq!(all.items[0].id, DeliveryId::new(ERA, 205_000));
    let page = PageRequest { from: Some(100_001), size: 50 };
    let far = list(300, "a page far behind", any.clone(), page).await;
    assert_eq!((far.items[0].id.number, far.next), (100_000, Some(99_951)));

    let of = |states: &[DeliveryState]| DeliveryFilter { states: states.to_vec(), ..any.clone() };
    let pending =
        list(1_100, "what waits, behind all that has ended", of(&[DeliveryState::Waiting]), PAGE).await;
    assert_eq!(pending.items.len(), 50);
    let dead = list(350, "dead letters", of(&[DeliveryState::DeadLettered]), PAGE).await;
    assert_eq!(dead.items.len(), 50);
    let delivered = list(1_400, "what was delivered", of(&[DeliveryState::Delivered]), PAGE).await;
    assert_eq!(delivered.items.len(), 50);
    let filter = DeliveryFilter { reason: Some(DeadLetterReason::Refused), ..any.clone() };
    let refused = list(50_000, "dead letters for a reason that none has", filter, PAGE).await;
    assert!(refused.items.is_empty() && refused.next.is_some(), "it is short, and says where to go on");
    let filter = DeliveryFilter { service: Some(slug("service-7")), ..of(&[DeliveryState::Queued]) };
    assert!(
        list(12_000, "what is queued for a service that has nothing", filter, PAGE).await.items.is_empty()
    );
    let filter = DeliveryFilter { service: Some(slug("service-7")), ..any.clone() };
    assert_eq!(list(25_000, "deliveries to a service", filter, PAGE).await.items.len(), 10);
    let filter = DeliveryFilter { sources: Some(vec!["rare".into()]), ..any.clone() };
    assert!(list(45_000, "deliveries from a rare source", filter, PAGE).await.items.is_empty());
    let filter = DeliveryFilter { event: Some("event-100000".into()), ..any };
    assert_eq!(list(20, "deliveries of an event", filter, PAGE).await.items.len(), 1);

    let id = DeliveryId::new(ERA, 123_450);
    let one = reads_at_most(20, "a delivery", &explained, deliveries::delivery(&session, id)).await;
    assert_eq!(one.unwrap().0.id, id);
    let other = deliveries::delivery(&session, DeliveryId::new(ERA + 1, 123_450)).await.unwrap();
    assert_eq!(other, None, "a number of another era is another delivery");
}

/// HUB-3, PRM-9: pages of events read few rows, and none of the payloads that are not shown.
#[tokio::test]
async fn hub_3_pages_of_events_read_few_rows() {
    let (session, explained) = plans::session().await;
    let list = async |most, what: &str, filter: EventFilter| {
        reads_at_most(most, what, &explained, events::events(&session, &filter, PAGE)).await
    };
    let any = EventFilter::default();
    assert_eq!(list(120, "a first page", any.clone()).await.items.len(), 50);
    for kind in ["odd.kind", "odd.*"] {
        let filter = EventFilter { kind: Pattern::new(kind).ok(), ..any.clone() };
        let odd = list(10_100, "events of a rare type", filter).await;
        assert!(odd.items.is_empty() && odd.next.is_some());
    }
    let filter = EventFilter { unmatched: true, sources: Some(vec!["shop".into()]), ..any };
    list(10_100, "events that no rule matched", filter).await;
    for source in [None, Some("shop")] {
        let one = events::event(&session, "event-123", source);
        assert!(reads_at_most(6, "an event", &explained, one).await.is_some());
    }
}

/// OBS-2, PRM-9: counting a backlog takes no longer when it is large.
#[tokio::test]
async fn obs_2_a_backlog_is_counted_up_to_a_limit() {
    let (session, explained) = plans::session().await;
    let count = async |most, whose| {
        reads_at_most(300, "a pending count", &explained, backlog::pending(&session, &whose, most)).await
    };
    assert_eq!(count(100, DeliverySelector::Service(slug("service-1"))).await, 100);
    assert_eq!(count(100, DeliverySelector::Service(slug("service-7"))).await, 0);
    assert_eq!(count(100, DeliverySelector::HeldBy(slug("rule-50"))).await, 5);
    let services: Vec<Slug> = (0..1_000).map(|n| slug(&format!("service-{n}"))).collect();
    let counted = backlog::backlog_counts(&session, services, 100);
    // Two services have a backlog, and all groups say how many of their dead letters are open.
    let counts = reads_at_most(3_000 + 400, "the backlog of all", &explained, counted).await;
    assert_eq!((counts.waiting.len(), counts.waiting[0].1, counts.waiting[7].1), (1_000, 100, 0));
    assert!(!counts.dead_letters.is_empty());
}

/// HUB-6, PRM-9: a search for dead letters reads what it finds, and the groups.
#[tokio::test]
async fn hub_6_searches_for_dead_letters_read_few_rows() {
    let (session, explained) = plans::session().await;
    /// The groups are read whole, and they are few.
    const GROUPS: u64 = 3_000;
    let any = LetterFilter::default();
    let list = async |most, what: &str, filter: LetterFilter| {
        let page = dead_letters::dead_letters(&session, &filter, PAGE);
        reads_at_most(GROUPS + most, what, &explained, page).await.page.items
    };
    assert_eq!(list(700, "a first page", any.clone()).await.len(), 50);
    let filter = LetterFilter { service: Some(slug("service-10")), ..any.clone() };
    assert!(!list(700, "dead letters of a service", filter).await.is_empty());
    let filter = LetterFilter { states: vec![LetterState::Parked], ..any.clone() };
    assert_eq!(list(700, "the few that are parked, among all", filter).await.len(), 20);
    let filter = LetterFilter { group: Some(Fingerprint(10)), ..any.clone() };
    assert!(!list(700, "dead letters of a group", filter).await.is_empty());
    let filter = LetterFilter { text: Some("word150000".into()), ..any.clone() };
    assert_eq!(list(50, "a rare word", filter).await.len(), 1);
    let filter = LetterFilter { text: Some("common half0".into()), ..any.clone() };
    // The index is asked for all that have both words, and gives up at the first 2 000 rows.
    assert_eq!(list(15_000, "two words", filter).await.len(), 50);
    let filter = LetterFilter { text: Some("common".into()), ..any.clone() };
    assert_eq!(list(30_000, "a word that all have", filter).await.len(), 50);
    let ids = [10_010, 10_020].map(|number| DeliveryId::new(ERA, number)).to_vec();
    let filter = LetterFilter { ids: ids.clone(), ..any.clone() };
    assert_eq!(list(100, "dead letters by their ids", filter).await.len(), 2);
    let ids = ids.into_iter().map(|id| DeliveryId::new(ERA + 1, id.number)).collect();
    let filter = LetterFilter { ids, ..any.clone() };
    assert_eq!(list(100, "ids of another era", filter).await, []);
    let filter = LetterFilter { event: Some("event-150000".into()), ..any.clone() };
    assert_eq!(list(100, "dead letters of an event", filter).await.len(), 1);
    let since = LetterFilter { since: Some(Millis(204_000)), ..any.clone() };
    assert_eq!(list(800, "recent dead letters", since).await.len(), 50);
    let within = Visibility { sources: Some(vec!["shop".into()]), services: Some(vec![slug("service-10")]) };
    let filter = LetterFilter { within, ..any.clone() };
    assert!(!list(900, "dead letters that a key may see", filter).await.is_empty());

    let count = async |most, filter: LetterFilter| {
        let counted = dead_letters::count_letters(&session, &filter, 1_000);
        reads_at_most(GROUPS + most, "a count", &explained, counted).await
    };
    let all = count(1_100, any.clone()).await;
    assert_eq!((all.count, all.all), (1_000, false));
    let filter = LetterFilter { text: Some("word150000".into()), ..any.clone() };
    let found = count(200, filter).await;
    assert_eq!((found.count, found.all, found.unindexed), (1, true, 100));

    let behind = dead_letters::letters_behind(&session, &any, 100_000, 20);
    let (batch, last, more) = reads_at_most(GROUPS + 400, "a batch", &explained, behind).await;
    assert_eq!((batch.len(), last, more), (20, 100_200, true));
    let id = DeliveryId::new(ERA, 150_000);
    let one = reads_at_most(30, "a dead letter", &explained, dead_letters::dead_letter(&session, id)).await;
    assert_eq!(one.unwrap().dead.state, LetterState::Parked);
}

/// HUB-6, PRM-9: groups, operations and the replays of an operation are found by indexes.
#[tokio::test]
async fn hub_6_groups_and_replays_are_found_by_indexes() {
    let (session, explained) = plans::session().await;
    let filter = GroupFilter::default();
    let page = reads_at_most(3_200, "groups", &explained, groups::groups(&session, &filter, PAGE)).await;
    assert_eq!((page.items.len(), page.next), (50, Some(50)));
    assert!(page.items.iter().all(|group| group.sample.is_some()));
    let one = reads_at_most(5, "a group", &explained, groups::group(&session, Fingerprint(40))).await;
    assert_eq!(one.unwrap().failure.service, slug("service-40"));
    let operation = OperationId::new(ERA, 1);
    let names = [slug("service-0"), slug("service-40")];
    let untried = operations::untried_replays(&session, operation, &names);
    let waiting = reads_at_most(3_000 + 400, "untried replays", &explained, untried).await;
    assert!(!waiting.is_empty());
}

/// HUB-9, HUB-12, PRM-9: what runs by itself reads few rows.
#[tokio::test]
async fn hub_9_what_runs_by_itself_reads_few_rows() {
    let (session, explained) = plans::session().await;
    let limits = Retention::default().limits(Millis(i64::MAX / 2));
    let old = retention::old_events(&session, limits, 100_000);
    let old = reads_at_most(6_000, "old events", &explained, old).await;
    assert_eq!((old.found.len(), old.next), (990, Some(101_000)), "every hundredth has to be handled");
    let dead = alerts::dead_since(&session, Millis(0), 100);
    let dead = reads_at_most(300, "recent dead letters", &explained, dead).await;
    assert_eq!(dead.iter().map(|(_, count)| count).sum::<u32>(), 100);
    let live = reads_at_most(250, "live incidents", &explained, alerts::live_incidents(&session)).await;
    assert_eq!(live.len(), 200);
    let filter = IncidentFilter::default();
    let page = alerts::incidents(&session, &filter, PAGE);
    assert_eq!(reads_at_most(60, "incidents", &explained, page).await.items.len(), 50);
    let filter = IncidentFilter { rule: Some(slug("other")), ..IncidentFilter::default() };
    let page = alerts::incidents(&session, &filter, PAGE);
    assert!(
        reads_at_most(10_100, "incidents of a rule without any", &explained, page).await.items.is_empty()
    );
    let page = reads_at_most(60, "the audit log", &explained, registry::audit(&session, PAGE)).await;
    assert_eq!(page.items.len(), 50);
}
