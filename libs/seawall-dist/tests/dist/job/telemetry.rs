//! What jobs do as numbers and log lines.

#![cfg(all(feature = "metrics", feature = "tracing"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall_dist::schedule::{Job, JobContext, JobStore, MemoryJobStore, Schedule};
use seawall_testkit::observe::Lines;

use super::{TICK, jobs};
use crate::observe::numbers;

/// OBS-2: runs by outcome, their durations, and missed ticks are counted.
#[tokio::test(start_paused = true)]
async fn obs_2_runs_and_missed_ticks_are_counted() {
    let (numbers, lines) = (numbers(), Lines::collect());
    let _recorder = metrics::set_default_local_recorder(&numbers);
    let (store, calls) = (Arc::new(MemoryJobStore::new()), Arc::new(AtomicU32::new(0)));
    let (thief, counted) = (store.clone(), calls.clone());
    let report = Job::new("report", Schedule::every(TICK * 10).unwrap(), move |context: JobContext| {
        let (call, thief) = (counted.fetch_add(1, Ordering::Relaxed), thief.clone());
        async move {
            match call {
                0 => tokio::time::sleep(TICK).await,
                // Longer than the interval: one tick is missed.
                1 => tokio::time::sleep(TICK * 14).await,
                2 => return Err(std::io::Error::other("no disk")),
                // Somebody else ends the run: its lease is lost.
                _ => {
                    let end = seawall_dist::schedule::RunEnd {
                        job: "report".to_owned(),
                        tick: context.tick,
                        fence: context.fence,
                        error: None,
                        passed: None,
                        keep: 10,
                    };
                    assert!(thief.finish(&end).await.unwrap());
                    std::future::pending::<()>().await;
                }
            }
            Ok(())
        }
    });
    let handle = jobs(&store, report).build().unwrap();
    let of = |name: &str| numbers.get(name);
    let lost = "seawall.job.runs{job=report,outcome=lost}";
    let stopping = async {
        while of(lost).is_none() {
            tokio::time::sleep(TICK).await;
        }
    };
    handle.run(stopping).await;
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    assert_eq!(of("seawall.job.runs{job=report,outcome=success}"), Some(2.0));
    assert_eq!(of("seawall.job.runs{job=report,outcome=failed}"), Some(1.0));
    assert_eq!(of(lost), Some(1.0));
    assert_eq!(of("seawall.job.missed{job=report}"), Some(1.0));
    let took = of("seawall.job.run.duration{job=report}").unwrap();
    assert!((15.0..15.1).contains(&took), "the runs took {took} s");
    assert_eq!(lines.of("INFO [Job][Run] Success.").len(), 2);
    let failed = lines.of("ERROR [Job][Run] Failed!");
    assert!(failed.len() == 2 && failed[0].contains("no disk"), "{failed:?}");
    assert_eq!(lines.of("WARN [Job][Missed] Failed!").len(), 1);
}
