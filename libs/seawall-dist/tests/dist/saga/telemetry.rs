//! What sagas do as numbers and log lines.

#![cfg(all(feature = "metrics", feature = "tracing"))]

use std::sync::Arc;

use seawall_dist::saga::{NewSaga, StepError};
use seawall_testkit::observe::Lines;

use super::scripted::{Call, ScriptedStore};
use super::{LEASE, Record, fine, refused, sagas, step, transfer};
use crate::observe::numbers;

/// OBS-2: starts, ends, retries, takeovers, lost leases and states are counted, each once.
#[tokio::test(start_paused = true)]
async fn obs_2_sagas_are_counted() {
    let (numbers, lines) = (numbers(), Lines::collect());
    let _recorder = metrics::set_default_local_recorder(&numbers);
    let (store, record) = (Arc::new(ScriptedStore::default()), Record::default());
    let shaky = |attempt| if attempt == 1 { Err(StepError::transient("try later")) } else { Ok(()) };
    let handle = sagas(&store, transfer(&record).step(step("notify", &record, shaky, fine))).build().unwrap();
    let new = |id| NewSaga::new("transfer", id, "");
    // Three that are submitted are begun by the monitor, not taken over.
    for id in ["s1", "s2", "s3"] {
        handle.submit(new(id)).await.unwrap();
    }
    assert_eq!(handle.run_due().await.unwrap(), 3);
    // One whose process goes away is taken over.
    let mut future = Box::pin(handle.start(new("t1")));
    let _ = seawall_testkit::poll_once(future.as_mut());
    drop(future);
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(handle.run_due().await.unwrap(), 1);
    let of = |name: &str| numbers.get(name);
    assert_eq!(of("seawall.sagas.started{saga=transfer@1}"), Some(4.0));
    assert_eq!(of("seawall.sagas.ended{saga=transfer@1,state=completed}"), Some(4.0));
    assert_eq!(of("seawall.saga.step.retries{saga=transfer@1,kind=action}"), Some(4.0));
    assert_eq!(
        of("seawall.saga.takeovers{saga=transfer@1}"),
        Some(1.0),
        "what was submitted was counted too"
    );
    assert_eq!(lines.of("WARN [Saga][TakeOver] Start.").len(), 1);
    assert_eq!(lines.of("INFO [Saga][Begin] Start.").len(), 3);
    // One that is undone, one that can't be, and one whose lease is lost.
    let stuck = step("notify", &record, refused, move |attempt| {
        if attempt == 1 { Err(StepError::transient("try later")) } else { refused(attempt) }
    });
    let stuck = sagas(&store, transfer(&record).step(stuck.compensation_attempts(2))).build().unwrap();
    let undone = transfer(&record).step(step("notify", &record, refused, fine));
    let undone = sagas(&store, undone).build().unwrap();
    let _ = undone.start(new("u1")).await.unwrap();
    let _ = stuck.start(new("n1")).await.unwrap();
    store.hang(&[Call::Renew, Call::Write]);
    assert!(handle.start(new("l1")).await.is_err());
    store.hang(&[]);
    assert_eq!(of("seawall.sagas.ended{saga=transfer@1,state=compensated}"), Some(1.0));
    assert_eq!(of("seawall.sagas.ended{saga=transfer@1,state=needs_attention}"), Some(1.0));
    assert_eq!(of("seawall.saga.step.retries{saga=transfer@1,kind=compensation}"), Some(1.0));
    assert_eq!(of("seawall.saga.leases.lost{}"), Some(1.0));
    assert_eq!(lines.of("ERROR [Saga][NeedsAttention] Failed!").len(), 1);
    // The monitor shows what there is, before it has taken over the last one.
    store.hang(&[Call::ClaimDue]);
    handle.run(tokio::time::sleep(LEASE)).await;
    for (state, count) in [("running", 1.0), ("compensating", 0.0), ("needs_attention", 1.0)] {
        assert_eq!(of(&format!("seawall.sagas{{state={state}}}")), Some(count), "{state}");
    }
}
