//! A few tasks that are started and awaited together.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use seawall::task::{Group, GroupError, TaskError};
use seawall::{millis, secs};
use seawall_testkit::drop_at_every_poll;
use tokio::task::yield_now;
use tokio::time::sleep;

/// Counts those that live; leaving is dropping.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

struct One(Alive);

impl Alive {
    fn one(&self) -> One {
        self.0.fetch_add(1, Ordering::SeqCst);
        One(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Panics without the hook, so that the log of the tests stays short.
fn bang(message: &'static str) -> ! {
    resume_unwind(Box::new(message))
}

/// TSK-5: all are waited for, and their values come in the order in which they were spawned.
#[tokio::test(start_paused = true)]
async fn tsk_5_waits_for_all_and_keeps_the_order() {
    let mut group = Group::<_, ()>::new();
    for wait in [30, 10, 20] {
        group.spawn(format!("after {wait} ms"), async move {
            sleep(millis(wait)).await;
            Ok(wait)
        });
    }
    assert_eq!((group.len(), group.is_empty()), (3, false));
    assert_eq!(format!("{group:?}"), r#"Group { tasks: ["after 30 ms", "after 10 ms", "after 20 ms"], .. }"#);
    assert_eq!(group.values().await.unwrap(), [30, 10, 20]);
    assert_eq!(Group::<(), ()>::new().wait().await.ok(), Some(()));
}

/// TSK-5: the first failure in time is returned with its task's name, after all have ended.
#[tokio::test(start_paused = true)]
async fn tsk_5_the_first_error_comes_back_with_its_name() {
    let ended = Alive::default();
    let mut group = Group::new();
    for (name, wait) in [("late", 20), ("early", 10)] {
        group.spawn(name, async move {
            sleep(millis(wait)).await;
            Err(std::io::Error::other(format!("after {wait}")))
        });
    }
    let end = ended.clone();
    group.spawn("last", async move {
        sleep(millis(30)).await;
        std::mem::forget(end.one());
        Ok(())
    });
    let error = group.wait().await.unwrap_err();
    assert_eq!((error.task(), error.to_string().as_str()), ("early", "task `early` failed"));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "after 10");
    assert!(matches!(error.into_cause(), TaskError::Failed(error) if error.to_string() == "after 10"));
    assert_eq!(ended.count(), 1, "without cancel_on_error the others go on to their end");
}

/// TSK-5: of two that failed before anybody waited, the first is the first.
#[tokio::test(start_paused = true)]
async fn tsk_5_the_first_error_is_the_first_in_time_also_if_nobody_waited() {
    let mut group = Group::<(), _>::new();
    for (name, wait) in [("third", 30), ("first", 10), ("second", 20)] {
        group.spawn(name, async move {
            sleep(millis(wait)).await;
            Err(wait)
        });
    }
    sleep(secs(1)).await;
    assert_eq!(group.wait().await.unwrap_err().task(), "first");
}

/// TSK-5: a panic is an error with its message, whatever was panicked with, and the callback hears of each.
#[tokio::test]
async fn tsk_5_a_panic_comes_back_as_an_error_and_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let callback = {
        let told = told.clone();
        move |task: &str, panic: &seawall::task::Panic| {
            told.lock().unwrap().push(format!("{task}: {}", panic.message()));
            bang("the callback panics too");
        }
    };
    let mut group = Group::<u8, ()>::new().on_panic(callback);
    group.spawn("fine", async { Ok(1) });
    group.spawn("broken", async { bang("out of paper") });
    group.spawn("odd", async { resume_unwind(Box::new(7)) });
    group.spawn("ends badly", async {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                bang("in drop");
            }
        }
        let _bomb = Bomb;
        Ok(4)
    });
    let results = group.results().await;
    let said: Vec<_> = results
        .iter()
        .map(|(name, result)| match result {
            Ok(value) => format!("{name}: {value}"),
            Err(error) => format!("{name}: {error}"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "fine: 1",
            "broken: panicked: out of paper",
            "odd: panicked: (a value that is no text)",
            "ends badly: panicked: in drop"
        ]
    );
    assert_eq!(
        *told.lock().unwrap(),
        ["broken: out of paper", "odd: (a value that is no text)", "ends badly: in drop"]
    );
}

/// TSK-5: siblings are cancelled at once if asked, by an error and by a panic, and are gone when `wait` returns.
#[tokio::test]
async fn tsk_5_siblings_are_cancelled_if_asked() {
    for panics in [false, true] {
        let alive = Alive::default();
        let mut group = Group::new().cancel_on_error();
        for _ in 0..5 {
            let one = alive.one();
            group.spawn("sibling", async move {
                let _one = one;
                pending::<()>().await;
                Ok(())
            });
        }
        group.spawn("culprit", async move {
            yield_now().await;
            if panics { bang("culprit") } else { Err(()) }
        });
        // Nobody waits yet, and still they go.
        while alive.count() > 0 {
            yield_now().await;
        }
        let one = alive.one();
        group.spawn("too late", async move {
            let _one = one;
            unreachable!("never started")
        });
        assert_eq!(alive.count(), 0);
        let error: GroupError<()> = group.wait().await.unwrap_err();
        assert_eq!(error.task(), "culprit");
        assert_eq!(error.cause().panicked().is_some(), panics);
    }
}

/// TSK-5: which were cancelled can be seen.
#[tokio::test]
async fn tsk_5_cancelled_siblings_are_told_apart() {
    let mut group = Group::<(), &str>::new().cancel_on_error();
    group.spawn("hangs", pending());
    group.spawn("fails", async { Err("no") });
    let results = group.results().await;
    assert!(results[0].1.as_ref().unwrap_err().is_cancelled());
    assert_eq!(results[1].1.as_ref().unwrap_err().failed(), Some(&"no"));
}

/// TSK-5: on several threads, a failure among many cancels the rest, whichever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tsk_5_on_several_threads_one_failure_ends_all() {
    for round in 0..50 {
        let alive = Alive::default();
        let mut group = Group::new().cancel_on_error();
        for task in 0..20 {
            let one = alive.one();
            group.spawn(format!("{task}"), async move {
                let _one = one;
                yield_now().await;
                if task == round % 20 { Err(task) } else { pending().await }
            });
        }
        let error = group.wait().await.unwrap_err();
        assert_eq!((error.cause().failed(), alive.count()), (Some(&(round % 20)), 0));
    }
}

/// TSK-5: dropping the group cancels its tasks.
#[tokio::test]
async fn tsk_5_nothing_outlives_the_group() {
    let alive = Alive::default();
    let mut group = Group::<(), ()>::new();
    for _ in 0..3 {
        let one = alive.one();
        group.spawn("for ever", async move {
            let _one = one;
            pending().await
        });
    }
    yield_now().await;
    assert_eq!(alive.count(), 3);
    drop(group);
    while alive.count() > 0 {
        yield_now().await;
    }
}

/// TSK-5, PRM-4: `wait` dropped at any poll cancels all.
#[test]
fn tsk_5_waiting_dropped_at_any_poll_cancels_all() {
    let polls = drop_at_every_poll(
        || (tokio::runtime::Builder::new_current_thread().build().unwrap(), Alive::default()),
        |(runtime, alive)| {
            let mut group = Group::<(), ()>::new();
            let entered = runtime.enter();
            for yields in [1, 4, 7] {
                let one = alive.one();
                group.spawn("some", async move {
                    let _one = one;
                    for _ in 0..yields {
                        yield_now().await;
                    }
                    Ok(())
                });
            }
            drop(entered);
            Box::pin(async { group.wait().await.unwrap() })
        },
        |(runtime, _)| runtime.block_on(yield_now()),
        |(runtime, alive), dropped| {
            runtime.block_on(yield_now());
            assert_eq!(alive.count(), 0, "{dropped:?}");
        },
    );
    assert!(polls >= 3, "{polls} polls");
}
