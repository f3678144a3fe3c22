//! What is old goes while the hub is at work.

use std::time::Duration;

use seawall::millis;
use seawall_hub_core::domain::delivery::DeliveryState;
use seawall_hub_core::domain::retention::Retention;
use seawall_hub_core::port::store::{EventFilter, EventReads, PageRequest};
use seawall_testkit::until;
use serde_json::json;

use crate::scene::{Scene, USUAL, everything};
use crate::time::{Timed, on_all_stores};

on_all_stores!(hub_9_events_come_in_while_old_ones_go);

/// HUB-9: the hub lets go of what is old while events come in, and none of those is lost or refused.
async fn hub_9_events_come_in_while_old_ones_go<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, USUAL, everything()).await;
    scene
        .play(async {
            let mut old = Vec::new();
            for number in 0..300 {
                old.push(scene.one(&format!("old-{number}"), json!({})).await);
            }
            scene.until_all(&old, DeliveryState::Delivered).await;
            scene.pass(millis(2)).await;
            let none = Some(Duration::ZERO);
            scene.hub.ops.keep_for(Retention { delivered: none, discarded: none, audit: None });
            let (pruned, new) = tokio::join!(scene.hub.ops.prune(), async {
                let mut new = Vec::new();
                for number in 0..300 {
                    new.push(scene.one(&format!("new-{number}"), json!({})).await);
                }
                new
            });
            pruned.unwrap();
            // On a busy machine the hub prunes a part of them by itself. The newest delivery is never pruned.
            let page = PageRequest { from: None, size: 700 };
            until("the old events are pruned", async || {
                let events = scene.store.events(EventFilter::default(), page).await.unwrap().items;
                events.iter().filter(|event| event.id.starts_with("old-")).count() <= 1
            })
            .await;
            scene.hub.ops.keep_for(Retention::default());
            assert_eq!(new.len(), 300);
            assert_eq!(scene.hub.ops.prune().await.unwrap().events, 0, "what is new stays");
        })
        .await;
}
