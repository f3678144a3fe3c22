//! What grows: rules, services, and deliveries that wait for somebody else.

use std::time::Instant;

use serde_json::json;

use super::Bench;
use super::event;
use super::lab::Lab;
use super::load::{Load, Pace, Stop};
use super::scenes::{deliver, steady};
use super::sink::Manner;

pub const RULES: &str = "by rules, 64 clients that wait for the arrival";
pub const SERVICES: &str =
    "by services, each with its rule and its peer, 64 clients that wait for the arrival";
pub const PENDING: &str =
    "by deliveries that wait for another, paused service, 64 clients that wait for the arrival";

/// So many deliveries begin with one event of the group that waits.
const AT_ONCE: u64 = 50;
/// The group of events that are for a service which does not take them.
pub const HELD_GROUP: usize = 9_999;

pub fn few_to_many(bench: &Bench<'_>) -> Vec<u64> {
    if bench.options.quick { vec![10, 100] } else { vec![10, 100, 1_000] }
}

pub fn pending_steps(most: u64) -> Vec<u64> {
    [0, most / 10, most].to_vec()
}

pub async fn rules(bench: &mut Bench<'_>) -> Result<(), String> {
    for count in few_to_many(bench) {
        let name = format!("{count} rules");
        if !bench.options.wants(RULES, &name) {
            continue;
        }
        let mut lab = Lab::new(bench.options).await?.with_sink().await?;
        let began = Instant::now();
        for other in 1..count {
            lab.api.rule(&format!("other-{other}"), &format!("other.{other:04}"), "sink").await?;
        }
        let set_up = format!("rules registered in {:.1} s", began.elapsed().as_secs_f64());
        let load = Load { pace: Pace::Arrived, ..steady(bench, 64) };
        deliver(bench, &lab, RULES, name, load).await?;
        bench.note(set_up);
    }
    Ok(())
}

pub async fn services(bench: &mut Bench<'_>) -> Result<(), String> {
    for count in few_to_many(bench) {
        let name = format!("{count} services");
        if !bench.options.wants(SERVICES, &name) {
            continue;
        }
        let mut lab = Lab::new(bench.options).await?;
        let began = Instant::now();
        for each in 0..count as usize {
            let (service, at) = (format!("peer-{each}"), lab.peer(Manner::Prompt).await?);
            lab.api.service(&service, at, false).await?;
            lab.api.rule(&format!("to-{each}"), &event::kind(each), &service).await?;
        }
        let set_up = format!("registered in {:.1} s", began.elapsed().as_secs_f64());
        let load = Load { pace: Pace::Arrived, groups: count as usize, ..steady(bench, 64) };
        deliver(bench, &lab, SERVICES, name, load).await?;
        bench.note(set_up);
    }
    Ok(())
}

pub async fn pending(bench: &mut Bench<'_>) -> Result<(), String> {
    for count in pending_steps(bench.options.pending) {
        let name = format!("{count} pending");
        if !bench.options.wants(PENDING, &name) {
            continue;
        }
        let mut lab = Lab::new(bench.options).await?.with_sink().await?;
        let at = lab.peer(Manner::Prompt).await?;
        lab.api.service("held", at, true).await?;
        let began = Instant::now();
        fill(&mut lab, "held", count).await?;
        let filled = began.elapsed();
        // A hub that was just started has none of it in memory but what it takes in hand.
        lab.restart().await?;
        let set_up = format!(
            "filled in {:.0} s, started again in {:.1} s",
            filled.as_secs_f64(),
            lab.hub.started_in.as_secs_f64()
        );
        let load = Load { pace: Pace::Arrived, ..steady(bench, 64) };
        deliver(bench, &lab, PENDING, name, load).await?;
        bench.note(set_up);
    }
    Ok(())
}

/// Makes so many deliveries for a service, fifty by each event.
pub async fn fill(lab: &mut Lab, service: &str, deliveries: u64) -> Result<(), String> {
    for n in 0..AT_ONCE {
        let rule = (format!("to-{service}-{n}"), event::kind(HELD_GROUP));
        lab.api
            .rule_with(&rule.0, &rule.1, service, json!({"path": "/held", "body": {"held": true}}))
            .await?;
    }
    let load = Load::new(32, Stop::Events(deliveries / AT_ONCE));
    lab.driver().closed(Load { first_group: HELD_GROUP, ..load }).await.map(drop)
}
