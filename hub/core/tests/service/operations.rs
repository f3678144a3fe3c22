//! Work on many dead letters: its pace, its canary, its brake, and what a restart leaves of it.

use std::collections::BTreeMap;
use std::time::Duration;

use seawall::millis;
use seawall_hub_core::domain::dead_letter::{LetterFilter, LetterState};
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState};
use seawall_hub_core::domain::operation::{BulkAction, Operation, OperationState, ReplayMode, ReplayPlan};
use seawall_hub_core::port::store::{DeadLetterReads, EventReads, LetterAction, PageRequest};
use seawall_hub_core::service::{BulkRequest, ChangeError, OperationCommand, ReplayRequest};
use serde_json::json;

use crate::factory::{MemoryFactory, StoreFactory};
use crate::peer::{Mood, WELL, says};
use crate::scene::{Scene, USUAL, billing, bulk_replay as replay, everything};
use crate::time::{Timed, on_all_stores};

on_all_stores!(
    hub_6_a_replay_of_all_sends_each_once_and_ends,
    hub_6_the_canary_stops_a_bad_fix_after_one_and_after_ten,
    hub_6_work_is_paused_resumed_and_cancelled,
    hub_6_a_replay_goes_on_after_a_restart_and_sends_each_once,
    hub_6_two_replays_of_the_same_send_each_once,
    hub_6_a_replay_of_many_that_all_fail_ends,
    hub_6_what_cannot_be_made_is_skipped_and_other_work_moves,
    hub_6_a_peer_that_hangs_has_few_replays_ahead,
    hub_6_work_ends_although_others_take_over_what_it_has_under_way,
    hub_9_work_that_ended_long_ago_is_pruned,
);

/// Makes dead letters, the oldest first.
async fn dead_letters(scene: &Scene<impl Timed>, count: usize) -> Vec<DeliveryId> {
    scene.peer.feel(says(422));
    let mut all = Vec::new();
    for number in 0..count {
        all.push(scene.one(&format!("evt-{number}"), json!({"number": number})).await);
    }
    scene.until_all(&all, DeliveryState::DeadLettered).await;
    scene.peer.forget();
    scene.peer.feel(WELL);
    all
}

/// HUB-6: an operation takes the dead letters that existed when it started. A replay that failed in the same millisecond used to
/// be taken once more.
#[tokio::test(start_paused = true)]
async fn hub_6_a_replay_that_fails_as_its_operation_starts_is_not_taken_again() {
    let scene = Scene::new(&MemoryFactory::create().await, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 3).await;
            scene.peer.feel(says(422));
            // Under paused time the replays fail before the clock moves on.
            let work =
                scene.hub.dead_letters.start_operation(&scene.cx(), &replay(1_000, &[])).await.unwrap();
            let done = scene.until_operation(work.id, |operation| operation.run.has_ended()).await;
            assert_eq!((done.run, done.progress.begun, done.progress.failed), (OperationState::Done, 3, 3));
            assert_eq!(states(&scene, &all).await, BTreeMap::from([(LetterState::FailedAgain, 3)]));
            let letters = scene.hub.dead_letters.preview(&replay(1, &[]).task, LetterFilter::default()).await;
            let open = letters.unwrap().sample;
            assert!(open.iter().any(|letter| letter.at == done.began), "one failed in that millisecond");
        })
        .await;
}

async fn states(scene: &Scene<impl Timed>, all: &[DeliveryId]) -> BTreeMap<LetterState, usize> {
    let mut counts = BTreeMap::new();
    for id in all {
        *counts.entry(scene.store.dead_letter(*id).await.unwrap().unwrap().dead.state).or_default() += 1;
    }
    counts
}

/// HUB-6: a replay of all goes one, then ten, then the rest; each arrives once; it ends when all have ended, and says so.
async fn hub_6_a_replay_of_all_sends_each_once_and_ends<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 60).await;
            let begun = scene
                .hub
                .dead_letters
                .start_operation(&scene.cx(), &replay(1_000, &ReplayPlan::CANARY))
                .await
                .unwrap();
            assert_eq!((begun.total, begun.run), (60, OperationState::Running));
            let done = scene.until_operation(begun.id, |operation| operation.run.has_ended()).await;
            assert_eq!((done.run, done.cause.as_deref()), (OperationState::Done, None));
            assert_eq!((done.progress.begun, done.progress.delivered, done.progress.tried), (60, 60, 60));
            assert_eq!(states(&scene, &all).await, BTreeMap::from([(LetterState::Delivered, 60)]));
            let mut events: Vec<String> = scene.peer.took();
            assert_eq!(events[0], "evt-0", "the oldest is the canary");
            events.sort();
            events.dedup();
            assert_eq!((events.len(), scene.peer.got().len()), (60, 60));
        })
        .await;
}

/// HUB-6: a bad fix is stopped after one, and after ten; what was not begun is as it was. Whoever goes on all the same can.
async fn hub_6_the_canary_stops_a_bad_fix_after_one_and_after_ten<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 30).await;
            scene.peer.feel(says(422));
            let first = scene
                .hub
                .dead_letters
                .start_operation(&scene.cx(), &replay(1_000, &ReplayPlan::CANARY))
                .await
                .unwrap();
            let stopped = scene.until_operation(first.id, |operation| operation.run.has_ended()).await;
            assert_eq!(
                (stopped.run, stopped.progress.begun, scene.peer.got().len()),
                (OperationState::Stopped, 1, 1)
            );
            assert!(stopped.cause.as_ref().is_some_and(|cause| cause.contains("canary")), "{stopped:?}");
            let replay_of = async |dead: DeliveryId| {
                let whole = scene.store.dead_letter(dead).await.unwrap().unwrap();
                whole.dead.replayed.map(|(id, ..)| id)
            };
            assert_eq!(stopped.failed_delivery, replay_of(all[0]).await, "it says which has stopped it");

            scene.peer.forget();
            scene.peer.feel(WELL);
            // All but one of the ten go well.
            scene.peer.script("evt-5", [says(422)]);
            let second = scene
                .hub
                .dead_letters
                .start_operation(&scene.cx(), &replay(1_000, &ReplayPlan::CANARY))
                .await
                .unwrap();
            let stopped = scene.until_operation(second.id, |operation| operation.run.has_ended()).await;
            assert_eq!((stopped.run, stopped.progress.begun), (OperationState::Stopped, 11));
            assert_eq!(scene.peer.got().len(), 11);
            let counts = states(&scene, &all).await;
            assert_eq!(counts.get(&LetterState::Open), Some(&18), "{counts:?}");

            // A transient failure is no success either: nobody waits for its retries to see that the fix is bad.
            scene.peer.forget();
            scene.peer.script("evt-12", [says(500)]);
            let third =
                scene.hub.dead_letters.start_operation(&scene.cx(), &replay(1_000, &[1])).await.unwrap();
            let stopped = scene.until_operation(third.id, |operation| operation.run.has_ended()).await;
            assert_eq!((stopped.run, stopped.progress.begun), (OperationState::Stopped, 1));
            assert_eq!(stopped.failed_delivery, replay_of(all[12]).await);
            let resumed = scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), third.id, OperationCommand::Resume)
                .await
                .unwrap();
            assert_eq!(resumed.failed_delivery, None);
            let done = scene.until_operation(third.id, |operation| operation.run.has_ended()).await;
            assert_eq!(done.run, OperationState::Done, "{done:?}");
            let left =
                scene.hub.dead_letters.preview(&replay(1, &[]).task, LetterFilter::default()).await.unwrap();
            assert_eq!((left.found.count, left.sample.len()), (0, 0));
        })
        .await;
}

/// HUB-6: pause, resume and cancel count at once: nothing begins after the answer. What has ended can't be steered.
async fn hub_6_work_is_paused_resumed_and_cancelled<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            dead_letters(&scene, 80).await;
            let work = scene.hub.dead_letters.start_operation(&scene.cx(), &replay(100, &[])).await.unwrap();
            scene.until_operation(work.id, |operation| operation.progress.begun > 5).await;
            let paused = scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), work.id, OperationCommand::Pause)
                .await
                .unwrap();
            assert_eq!(paused.run, OperationState::Paused);
            scene.pass(millis(300)).await;
            let later = scene.store.operation(work.id).await.unwrap().unwrap();
            assert_eq!(later.progress.begun, paused.progress.begun, "nothing began");
            assert_eq!(
                scene
                    .hub
                    .dead_letters
                    .command_operation(&scene.cx(), work.id, OperationCommand::Pause)
                    .await
                    .unwrap()
                    .run,
                OperationState::Paused,
                "twice"
            );
            scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), work.id, OperationCommand::Resume)
                .await
                .unwrap();
            scene
                .until_operation(work.id, |operation| operation.progress.begun > paused.progress.begun)
                .await;
            let ended = scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), work.id, OperationCommand::Cancel)
                .await
                .unwrap();
            assert!(ended.ended.is_some());
            scene.pass(millis(200)).await;
            let later = scene.store.operation(work.id).await.unwrap().unwrap();
            assert_eq!((later.run, later.progress.begun), (OperationState::Cancelled, ended.progress.begun));
            let refused = scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), work.id, OperationCommand::Resume)
                .await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict(cause)) if cause.contains("cancelled")),
                "{refused:?}"
            );
            assert_eq!(scene.store.running().await.unwrap(), []);
        })
        .await;
}

/// HUB-6, PRM-1: a hub that ends in the middle of a replay, again and again, replays each dead letter once.
async fn hub_6_a_replay_goes_on_after_a_restart_and_sends_each_once<F: Timed>() {
    let place = F::create().await;
    let mut scene = Scene::new(&place, USUAL, everything()).await;
    let (all, id) = scene
        .play(async {
            let all = dead_letters(&scene, 120).await;
            (all, scene.hub.dead_letters.start_operation(&scene.cx(), &replay(2_000, &[])).await.unwrap().id)
        })
        .await;
    for part in 1..=5 {
        scene.play(scene.until_operation(id, |operation| operation.progress.begun >= part * 15)).await;
        scene = scene.restart(&place).await;
    }
    scene
        .play(async {
            let done = scene.until_operation(id, |operation| operation.run.has_ended()).await;
            assert_eq!(
                (done.run, done.progress.begun, done.progress.delivered),
                (OperationState::Done, 120, 120)
            );
            assert_eq!(states(&scene, &all).await, BTreeMap::from([(LetterState::Delivered, 120)]));
            let mut replays: BTreeMap<String, Vec<DeliveryId>> = BTreeMap::new();
            for got in scene.peer.got() {
                replays.entry(got.event).or_default().push(got.delivery);
            }
            assert_eq!(replays.len(), 120);
            for (event, mut deliveries) in replays {
                deliveries.dedup();
                assert_eq!(deliveries.len(), 1, "{event} was replayed as {deliveries:?}");
            }
        })
        .await;
}

/// HUB-6: two that replay the same, at once: each dead letter is sent once. What is parked is left alone, a limit is kept, and
/// what fails again is not taken up by the same work.
async fn hub_6_two_replays_of_the_same_send_each_once<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 40).await;
            scene.hub.dead_letters.move_letter(&scene.cx(), all[0], LetterAction::Park).await.unwrap();
            let keyed = BulkRequest { key: Some("click".into()), ..replay(500, &[]) };
            let cx = scene.cx();
            let (a, b) = tokio::join!(
                scene.hub.dead_letters.start_operation(&cx, &keyed),
                scene.hub.dead_letters.start_operation(&cx, &keyed)
            );
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(a.id, b.id, "a double click");
            let other = scene.hub.dead_letters.start_operation(&scene.cx(), &replay(500, &[])).await.unwrap();
            for id in [a.id, other.id] {
                scene.until_operation(id, |operation| operation.run == OperationState::Done).await;
            }
            assert_eq!(scene.peer.got().len(), 39);
            let counts = states(&scene, &all).await;
            assert_eq!(counts, BTreeMap::from([(LetterState::Delivered, 39), (LetterState::Parked, 1)]));

            let more = dead_letters_named(&scene, "more", 10).await;
            scene.peer.feel(says(422));
            let few = BulkRequest { limit: Some(4), ..replay(500, &[]) };
            let few = scene.hub.dead_letters.start_operation(&scene.cx(), &few).await.unwrap();
            let done = scene.until_operation(few.id, |operation| operation.run == OperationState::Done).await;
            assert_eq!((done.total, done.progress.begun, done.progress.failed), (4, 4, 4));
            let counts = states(&scene, &more).await;
            assert_eq!(counts, BTreeMap::from([(LetterState::FailedAgain, 4), (LetterState::Open, 6)]));
        })
        .await;
}

/// HUB-6: those that fail at the first try count as tried: a replay of many that all fail comes to its end.
async fn hub_6_a_replay_of_many_that_all_fail_ends<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 100).await;
            // What fails in the millisecond in which the operation starts can't be told from what was there before.
            scene.peer.feel(Mood::Says(422, millis(1)));
            let work =
                scene.hub.dead_letters.start_operation(&scene.cx(), &replay(2_000, &[])).await.unwrap();
            let done = scene.until_operation(work.id, |operation| operation.run.has_ended()).await;
            let progress = done.progress;
            assert_eq!(
                (progress.begun, progress.tried, progress.faltered, progress.failed),
                (100, 100, 100, 100)
            );
            assert_eq!(states(&scene, &all).await, BTreeMap::from([(LetterState::FailedAgain, 100)]));
        })
        .await;
}

async fn dead_letters_named(scene: &Scene<impl Timed>, name: &str, count: usize) -> Vec<DeliveryId> {
    let mut all = Vec::new();
    for number in 0..count {
        all.push(scene.dead_letter(&format!("{name}-{number}"), json!({})).await);
    }
    scene.peer.forget();
    all
}

/// HUB-6: what can't be made anew is skipped, stays open and says why; other work deletes, restores, parks and purges.
async fn hub_6_what_cannot_be_made_is_skipped_and_other_work_moves<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 25).await;
            let broken = seawall_hub_core::domain::rule::Rule {
                body: Some(r#"{"x":"{{ data.missing }}"}"#.into()),
                ..everything()
            };
            scene.hub.registry.put_rule(&scene.cx(), broken, None).await.unwrap();
            let task =
                BulkAction::Replay(ReplayPlan { mode: ReplayMode::Render, rate: 1_000, canary: vec![] });
            let filter = LetterFilter { ids: all[..5].to_vec(), ..LetterFilter::default() };
            let work = BulkRequest { task, filter, limit: None, key: None };
            let done = scene.hub.dead_letters.start_operation(&scene.cx(), &work).await.unwrap();
            let done = scene.until_operation(done.id, |operation| operation.run.has_ended()).await;
            assert_eq!((done.progress.begun, done.progress.skipped), (0, 5));
            assert!(done.cause.as_ref().is_some_and(|cause| cause.contains("missing")), "{done:?}");
            assert!(done.failed_delivery.is_some_and(|id| all[..5].contains(&id)), "{done:?}");

            let do_all = async |task: BulkAction| {
                let (filter, limit, key) = (LetterFilter::default(), None, None);
                let work = BulkRequest { task, filter, limit, key };
                let begun = scene.hub.dead_letters.start_operation(&scene.cx(), &work).await.unwrap();
                let done =
                    scene.until_operation(begun.id, |operation| operation.run == OperationState::Done).await;
                let before = Operation { run: OperationState::Running, ..done.clone() };
                let waits_for = scene.hub.dead_letters.describe_wait(&before).await.unwrap();
                assert_eq!(waits_for, None, "nothing of it has to end anywhere else");
                done.progress.begun
            };
            assert_eq!(do_all(BulkAction::Park).await, 25);
            assert_eq!(
                do_all(BulkAction::Delete).await,
                0,
                "what is parked is not meant unless somebody says so"
            );
            assert_eq!(do_all(BulkAction::Unpark).await, 25);
            assert_eq!(do_all(BulkAction::Delete).await, 25);
            assert_eq!(do_all(BulkAction::Restore).await, 25);
            assert_eq!(states(&scene, &all).await, BTreeMap::from([(LetterState::Open, 25)]));
            assert_eq!(do_all(BulkAction::Purge).await, 25);
            assert_eq!(scene.store.dead_letter(all[0]).await.unwrap(), None);
            let listed = scene.store.operations(PageRequest { from: None, size: 3 }).await.unwrap();
            assert_eq!((listed.items.len(), listed.items[0].task.word()), (3, "purge"));
        })
        .await;
}

/// HUB-6: replays go behind fresh work, and a peer that is away has few ahead of it: the rest stays where it is.
async fn hub_6_a_peer_that_hangs_has_few_replays_ahead<F: Timed>() {
    let place = F::create().await;
    let slow =
        r#"{"attempt_timeout":"60s","breaker":{"consecutive_failures":1000},"bulkhead":{"max_calls":4}}"#;
    let scene = Scene::new(&place, slow, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 100).await;
            scene.peer.feel(Mood::Hangs);
            let work =
                scene.hub.dead_letters.start_operation(&scene.cx(), &replay(5_000, &[])).await.unwrap();
            scene.until_operation(work.id, |operation| operation.progress.begun >= 32).await;
            scene.pass(millis(400)).await;
            let waits = scene.store.operation(work.id).await.unwrap().unwrap();
            assert_eq!((waits.progress.begun, waits.progress.tried), (32, 0), "no more than a few");
            let counts = states(&scene, &all).await;
            assert_eq!(counts, BTreeMap::from([(LetterState::Open, 68), (LetterState::Replaying, 32)]));
            let kept = scene
                .store
                .delivery(scene.store.dead_letter(all[31]).await.unwrap().unwrap().dead.replayed.unwrap().0);
            assert!(kept.await.unwrap().unwrap().0.is_retry(), "behind fresh work");
        })
        .await;
}

/// HUB-6: work ends although somebody replays once more what it has under way, or puts it into the bin: it hears of the end all
/// the same. What is in the bin goes for good only when its replay has ended.
async fn hub_6_work_ends_although_others_take_over_what_it_has_under_way<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let all = dead_letters(&scene, 10).await;
            scene.hub.registry.pause_service(&scene.cx(), &billing(), true).await.unwrap();
            let work =
                scene.hub.dead_letters.start_operation(&scene.cx(), &replay(1_000, &[])).await.unwrap();
            scene.until_operation(work.id, |operation| operation.progress.begun == 10).await;

            let once_more = ReplayRequest { mode: ReplayMode::Same, again: true, key: None };
            scene.replay(all[0], &once_more).await.unwrap();
            scene.hub.dead_letters.move_letter(&scene.cx(), all[1], LetterAction::Delete).await.unwrap();
            let refused = scene.hub.dead_letters.move_letter(&scene.cx(), all[1], LetterAction::Purge).await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict(cause)) if cause.contains("replaying")),
                "{refused:?}"
            );
            let purge = BulkRequest { task: BulkAction::Purge, ..replay(1, &[]) };
            let purged = scene.hub.dead_letters.start_operation(&scene.cx(), &purge).await.unwrap();
            let purged = scene.until_operation(purged.id, |operation| operation.run.has_ended()).await;
            assert_eq!((purged.total, purged.progress.begun), (1, 0), "it is under way");

            scene.hub.registry.pause_service(&scene.cx(), &billing(), false).await.unwrap();
            let done = scene.until_operation(work.id, |operation| operation.run.has_ended()).await;
            assert_eq!(
                (done.run, done.progress.begun, done.progress.delivered),
                (OperationState::Done, 10, 10)
            );
            assert_eq!(
                states(&scene, &all).await,
                BTreeMap::from([(LetterState::Delivered, 9), (LetterState::Deleted, 1)])
            );
            scene.hub.dead_letters.move_letter(&scene.cx(), all[1], LetterAction::Purge).await.unwrap();
        })
        .await;
}

/// HUB-9: work that has ended goes when what is remembered of it does; what goes on stays, however old it is.
async fn hub_9_work_that_ended_long_ago_is_pruned<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            dead_letters(&scene, 3).await;
            let mut ids = Vec::new();
            for _ in 0..3 {
                let park = BulkRequest {
                    task: BulkAction::Park,
                    filter: LetterFilter::default(),
                    limit: None,
                    key: None,
                };
                let begun = scene.hub.dead_letters.start_operation(&scene.cx(), &park).await.unwrap();
                scene.until_operation(begun.id, |operation| operation.run == OperationState::Done).await;
                ids.push(begun.id);
            }
            let parked = LetterFilter { states: vec![LetterState::Parked], ..LetterFilter::default() };
            let slow = BulkRequest { filter: parked, ..replay(1, &[]) };
            let waits = scene.hub.dead_letters.start_operation(&scene.cx(), &slow).await.unwrap();
            scene
                .hub
                .dead_letters
                .command_operation(&scene.cx(), waits.id, OperationCommand::Pause)
                .await
                .unwrap();
            scene.hub.ops.keep_for(seawall_hub_core::domain::retention::Retention {
                audit: Some(Duration::ZERO),
                ..Default::default()
            });
            scene.pass(millis(5)).await;
            scene.hub.ops.prune().await.unwrap();
            let left = scene.store.operations(PageRequest { from: None, size: 10 }).await.unwrap().items;
            assert_eq!(
                left.iter().map(|one| (one.id, one.run)).collect::<Vec<_>>(),
                [(waits.id, OperationState::Paused)]
            );
            for id in ids {
                assert_eq!(scene.store.operation(id).await.unwrap(), None, "{id} is old");
            }
        })
        .await;
}
