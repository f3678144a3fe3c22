//! What is old goes, and nothing else.

use rusqlite::Connection;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::port::store::{Change, EventReads, PruneTarget, UnitStore, WritePriority};

use crate::place::Place;
use crate::suite::fixtures::{DELIVERED, Names, add, event, settle, to, unit};
use crate::suite::retention::{after, ended_and_pending, prune, prune_events};

/// How many rows there are of everything that belongs to an event.
fn rows(place: &Place) -> [i64; 5] {
    let connection = Connection::open(place.database()).unwrap();
    ["events", "deliveries", "requests", "attempts", "dead_letters"].map(|table| {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    })
}

/// HUB-9: an event goes with all that belongs to it when every delivery of it has ended and is old: what was delivered after a
/// week, what was discarded after a month. What waits, and dead letters that nobody has discarded, stay.
#[tokio::test]
async fn hub_9_an_event_goes_when_all_that_came_of_it_is_old() {
    let place = Place::new();
    let store = place.open();
    let half = ended_and_pending(&store).await;
    assert_eq!(rows(&place), [6, 7, 7, 2, 2]);

    assert_eq!(prune_events(&store, after(6)).await, 0, "nothing is old");
    assert_eq!(prune_events(&store, after(8)).await, 2, "what was delivered, and what was for nobody");
    assert_eq!(rows(&place), [4, 5, 5, 2, 2]);
    assert!(store.event("both delivered", None).await.unwrap().is_none());
    assert_eq!(prune_events(&store, after(31)).await, 1, "what was discarded");
    assert_eq!(rows(&place), [3, 4, 4, 1, 1]);
    assert_eq!(prune_events(&store, after(3_650)).await, 0);
    for id in ["one under way", "a dead letter", "the newest"] {
        assert!(store.event(id, None).await.unwrap().is_some(), "{id}");
    }
    // What ends late is old late.
    settle(&store, half[1], DELIVERED).await.unwrap();
    assert_eq!(prune_events(&store, after(8)).await, 1);
}

/// HUB-9: the file does not keep the room that pruning has left: what is more than a quarter of it goes back to the system, a
/// few pages at a time.
#[tokio::test]
async fn hub_9_room_is_given_back_a_few_pages_at_a_time() {
    let place = Place::new();
    let store = place.open();
    let numbers: Vec<u64> = (1..=400).collect();
    for number in &numbers {
        let mut large = (*event(&number.to_string())).clone();
        large.payload = vec![b'x'; 40_000].into();
        let large = Change::AddEvent(large.into(), vec![to("billing")]);
        let made = store.commit(WritePriority::Ingest, unit([large])).await.unwrap().names();
        settle(&store, made[0], DELIVERED).await.unwrap();
    }
    let pages = |name: &str| {
        let connection = Connection::open(place.database()).unwrap();
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = pages("page_count");
    assert_eq!(prune(&store, PruneTarget::Room { limit: 64 }).await.unwrap().touched, 0, "nothing is free");
    assert_eq!(prune_events(&store, after(8)).await, 399);
    let mut steps = 0;
    loop {
        match prune(&store, PruneTarget::Room { limit: 64 }).await.unwrap().touched {
            0 => break,
            given_back => assert!(given_back <= 64, "{given_back} pages at once"),
        }
        steps += 1;
    }
    let (after, free) = (pages("page_count"), pages("freelist_count"));
    assert!(steps > 10 && after < before / 2, "{before} pages were {after} after {steps} steps");
    assert!((1..=1_024).contains(&free), "{free} pages are free for what comes next");
}

/// HUB-9: while somebody reads for long, as a backup does, the log can't be folded back and grows. Afterwards it gives the room
/// back, and not only at the next start.
#[tokio::test]
async fn hub_9_the_log_gives_back_what_a_backup_has_cost() {
    const STORED: u64 = 64 * 1024 * 1024;
    let place = Place::new();
    let store = place.open();
    let log = || std::fs::metadata(place.database().with_extension("db-wal")).unwrap().len();
    let reader = Connection::open(place.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    for number in 0..90 {
        let large =
            Event { payload: vec![b'x'; 1_000_000].into(), ..Event::clone(&event(&number.to_string())) };
        store
            .commit(WritePriority::Ingest, unit([Change::AddEvent(large.into(), Vec::new())]))
            .await
            .unwrap();
    }
    assert!(log() > STORED + 20_000_000, "{}", log());
    reader.execute_batch("ROLLBACK").unwrap();
    for number in 0..5 {
        add(&store, &format!("later {number}"), &[]).await.unwrap();
    }
    assert!(log() <= STORED, "{}", log());
}
