//! The end of a process: in order, and in time.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::task::shutdown::{PartOutcome, Phase, Shutdown, ShutdownReport};
use seawall::{Clock, Tick, millis, secs};
use seawall_testkit::drop_at_every_poll;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

/// What happened, and after how many milliseconds.
#[derive(Clone)]
struct Diary {
    began: Tick,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn new() -> Self {
        Diary { began: Clock::default().now(), lines: Arc::default() }
    }

    fn write(&self, what: &str) {
        let after = Clock::default().now().since(self.began).as_millis();
        self.lines.lock().unwrap().push(format!("{after} {what}"));
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

fn endings(report: &ShutdownReport) -> Vec<String> {
    report.parts().iter().map(|part| format!("{}: {}", part.name, part.outcome)).collect()
}

fn at_once() -> Shutdown {
    Shutdown::new().delay(Duration::ZERO)
}

/// TSK-6: readiness goes first, then the delay, then phase after phase, whatever order the parts were added in.
#[tokio::test(start_paused = true)]
async fn tsk_6_phases_come_in_order_after_readiness_and_delay() {
    let diary = Diary::new();
    let mut shutdown = Shutdown::new();
    for &phase in Phase::ALL.iter().rev() {
        let diary = diary.clone();
        shutdown.on(phase, format!("the {phase}"), move || async move {
            diary.write(&phase.to_string());
            sleep(millis(100)).await;
        });
    }
    let (readiness, gone) = (shutdown.readiness(), shutdown.readiness());
    assert!(readiness.is_ready());
    let mut watcher = JoinSet::new();
    let watched = diary.clone();
    watcher.spawn(async move {
        gone.gone().await;
        watched.write("not ready");
    });
    let report = shutdown.run().await;
    assert!(!readiness.is_ready());
    assert_eq!(
        diary.lines(),
        [
            "0 not ready",
            "5000 accepting",
            "5100 in flight",
            "5200 pollers",
            "5300 monitors",
            "5400 brokers",
            "5500 databases"
        ]
    );
    assert_eq!((report.is_clean(), report.exit_code(), report.took()), (true, 0, millis(5600)));
    assert!(report.parts().iter().all(|part| part.took == millis(100)));
}

/// TSK-6: parts of one phase stop together; what is out of time is given up, named, and holds up the next phase no longer.
#[tokio::test(start_paused = true)]
async fn tsk_6_a_phase_out_of_time_is_given_up_and_the_next_begins() {
    let diary = Diary::new();
    let mut shutdown = at_once().limit(Phase::Pollers, secs(2)).limit(Phase::Brokers, secs(1));
    assert_eq!(shutdown.max_duration(), secs(2 + 10 + 2 + 2 + 1 + 3));
    let close = |phase, name: &'static str, wait| {
        let diary = diary.clone();
        move |shutdown: &mut Shutdown| {
            shutdown.on(phase, name, move || async move {
                struct Given(Diary, &'static str);
                impl Drop for Given {
                    fn drop(&mut self) {
                        self.0.write(&format!("{} is gone", self.1));
                    }
                }
                let _given = Given(diary, name);
                sleep(wait).await;
            });
        }
    };
    close(Phase::Pollers, "slow", secs(60))(&mut shutdown);
    close(Phase::Pollers, "quick", millis(500))(&mut shutdown);
    close(Phase::Brokers, "hung", secs(3600))(&mut shutdown);
    close(Phase::Databases, "orders", millis(10))(&mut shutdown);
    let report = shutdown.run().await;
    yield_now().await;
    assert_eq!(
        diary.lines(),
        ["500 quick is gone", "2000 slow is gone", "3000 hung is gone", "3010 orders is gone"]
    );
    assert_eq!(
        endings(&report),
        ["slow: out of time", "quick: finished", "hung: out of time", "orders: finished"]
    );
    let unfinished: Vec<_> = report.unfinished().map(|part| (part.name.as_ref(), part.took)).collect();
    assert_eq!(unfinished, [("slow", secs(2)), ("hung", secs(1))]);
    assert_eq!((report.exit_code(), report.is_forced(), report.took()), (1, false, millis(3010)));
}

/// TSK-6: a part that runs by itself is told in its phase, not before, and is waited for.
#[tokio::test(start_paused = true)]
async fn tsk_6_a_token_says_when_to_stop_and_that_it_has() {
    let diary = Diary::new();
    let mut shutdown = at_once();
    let mut parts = JoinSet::new();
    for (phase, name, last_work) in [(Phase::Monitors, "monitor", 0), (Phase::Pollers, "poller", 300)] {
        let (token, diary) = (shutdown.token(phase, name), diary.clone());
        parts.spawn(async move {
            assert!(!token.is_stopping());
            token.stopping().await;
            token.stopping().await;
            assert!(token.is_stopping());
            diary.write(&format!("{name} is told"));
            sleep(millis(last_work)).await;
        });
    }
    drop(shutdown.token(Phase::Pollers, "gone before"));
    let hung = shutdown.token(Phase::Pollers, "hung");
    yield_now().await;
    let report = shutdown.limit(Phase::Pollers, secs(1)).run().await;
    assert_eq!(diary.lines(), ["0 poller is told", "1000 monitor is told"]);
    assert_eq!(
        endings(&report),
        ["poller: finished", "gone before: finished", "hung: out of time", "monitor: finished"]
    );
    assert_eq!((report.parts()[0].took, report.parts()[1].took), (millis(300), Duration::ZERO));
    drop(hung);
}

/// TSK-6: what is under way is finished, also what came in meanwhile; what is left in the end is counted.
#[tokio::test(start_paused = true)]
async fn tsk_6_work_in_flight_is_counted_and_waited_for() {
    for (stuck, expected) in [(0, "requests: finished"), (3, "requests: out of time, 3 under way,")] {
        let mut shutdown = at_once();
        let requests = shutdown.tracker(Phase::InFlight, "requests");
        let mut work = JoinSet::new();
        for wait in [100, 200] {
            let requests = requests.clone();
            work.spawn(async move {
                let _first = requests.enter();
                sleep(millis(wait)).await;
                let _second = requests.enter();
                assert!(requests.is_stopping());
                requests.stopping().await;
                sleep(millis(wait)).await;
            });
        }
        for _ in 0..stuck {
            let requests = requests.clone();
            work.spawn(async move {
                let _one = requests.enter();
                pending::<()>().await;
            });
        }
        yield_now().await;
        assert_eq!((requests.count(), requests.is_stopping()), (2 + stuck, false));
        let report = shutdown.run().await;
        assert_eq!(endings(&report), [expected]);
        assert_eq!(report.took(), if stuck == 0 { millis(400) } else { secs(10) });
        assert_eq!(requests.count(), stuck);
    }
}

/// TSK-6: errors and panics are the result of their part, and harm no other.
#[tokio::test(start_paused = true)]
async fn tsk_6_what_goes_wrong_in_a_part_is_its_own_result() {
    let mut shutdown = at_once();
    shutdown.on(Phase::Brokers, "events", || async { Err::<(), _>("channel closed") });
    shutdown.on(Phase::Brokers, "mail", || async { resume_unwind(Box::new("in the middle")) as () });
    let at_the_start = || -> std::future::Ready<()> { resume_unwind(Box::new("at the start")) };
    shutdown.on(Phase::Brokers, "audit", at_the_start);
    shutdown.on(Phase::Databases, "orders", || async { Ok::<_, std::io::Error>(7) });
    let token = shutdown.token(Phase::Pollers, "poller");
    let mut tasks = JoinSet::<()>::new();
    tasks.spawn(async move {
        let _token = token;
        resume_unwind(Box::new("long ago"))
    });
    assert!(tasks.join_next().await.unwrap().is_err());
    let report = shutdown.run().await;
    assert_eq!(
        endings(&report),
        [
            "poller: panicked",
            "events: failed (channel closed)",
            "mail: panicked: in the middle",
            "audit: panicked: at the start",
            "orders: finished"
        ]
    );
    assert_eq!(report.exit_code(), 1);
}

/// TSK-6: forced to end, it ends at once, wherever it is, and says what it left undone.
#[tokio::test(start_paused = true)]
async fn tsk_6_a_second_signal_ends_it_at_once() {
    let run = async |delay, force| {
        let diary = Diary::new();
        let mut shutdown = Shutdown::new().delay(delay);
        for (phase, name) in
            [(Phase::InFlight, "requests"), (Phase::Pollers, "poller"), (Phase::Databases, "orders")]
        {
            let diary = diary.clone();
            shutdown.on(phase, name, move || async move {
                sleep(secs(1)).await;
                diary.write(name);
            });
        }
        let token = shutdown.token(Phase::Databases, "pool");
        let report = shutdown.run_until(sleep(force)).await;
        assert!(token.is_stopping(), "whoever still runs is told");
        assert_eq!((report.is_forced(), report.is_clean(), report.exit_code()), (true, false, 2));
        assert_eq!(report.took(), force);
        (diary.lines().len(), endings(&report).join("; "))
    };
    let undone = "poller: not started; orders: not started; pool: not started";
    assert_eq!(run(secs(5), secs(3)).await, (0, format!("requests: not started; {undone}")));
    assert_eq!(run(secs(0), millis(100)).await, (0, format!("requests: cut short; {undone}")));
    let later = "requests: finished; poller: cut short; orders: not started; pool: not started";
    assert_eq!(run(secs(0), millis(1500)).await, (1, later.to_owned()));
}

/// TSK-6: the report reads as a page of the log.
#[tokio::test(start_paused = true)]
async fn tsk_6_the_report_reads_well() {
    let mut shutdown = at_once();
    shutdown.on(Phase::Accepting, "http", || async {});
    shutdown.on(Phase::Databases, "orders database", pending::<()>);
    let requests = shutdown.tracker(Phase::InFlight, "requests");
    let _two = (requests.enter(), requests.enter());
    assert_eq!(
        shutdown.run().await.to_string(),
        "shutdown: 1 of 3 parts finished in 13s\n  \
           accepting  http             finished after 0s\n  \
           in flight  requests         out of time, 2 under way, after 10s\n  \
           databases  orders database  out of time after 3s"
    );
    let report = at_once().run_until(std::future::ready(())).await;
    assert_eq!(report.to_string(), "shutdown: 0 of 0 parts finished in 0s, cut short by a second signal");
    assert!(matches!(report.parts(), []));
}

/// TSK-6: a shutdown that is dropped has told nobody to stop.
#[tokio::test(start_paused = true)]
async fn tsk_6_a_shutdown_that_never_ran_stops_nobody() {
    let mut shutdown = at_once();
    assert_eq!(format!("{shutdown:?}"), "Shutdown { delay: 0ns, parts: [], .. }");
    let (token, readiness) = (shutdown.token(Phase::Pollers, "poller"), shutdown.readiness());
    drop(shutdown);
    let told = tokio::time::timeout(secs(60), token.stopping()).await;
    assert!(told.is_err() && !token.is_stopping() && readiness.is_ready());
}

/// TSK-6, PRM-4: dropped at any poll, what is being closed is dropped and no further phase begins.
#[test]
fn tsk_6_a_shutdown_dropped_at_any_poll_closes_nothing_more() {
    let polls = drop_at_every_poll(
        || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let _inside = runtime.enter();
            (Diary::new(), runtime)
        },
        |(diary, runtime)| {
            let mut shutdown = Shutdown::new();
            for &phase in Phase::ALL {
                let diary = diary.clone();
                shutdown.on(phase, "part", move || async move {
                    struct Under(Diary);
                    impl Drop for Under {
                        fn drop(&mut self) {
                            self.0.lines.lock().unwrap().push("end".to_owned());
                        }
                    }
                    let under = Under(diary);
                    under.0.lines.lock().unwrap().push("begin".to_owned());
                    sleep(millis(10)).await;
                });
            }
            let mut run = Box::pin(shutdown.run());
            Box::pin(std::future::poll_fn(move |cx| {
                let _inside = runtime.enter();
                run.as_mut().poll(cx).map(|report| assert!(report.is_clean()))
            }))
        },
        |(_, runtime)| runtime.block_on(async { sleep(secs(5)).await }),
        |(diary, runtime), dropped| {
            runtime.block_on(yield_now());
            let lines = diary.lines();
            let begun = lines.iter().filter(|line| *line == "begin").count();
            assert_eq!(begun * 2, lines.len(), "{dropped:?}: what began is gone");
            runtime.block_on(async { sleep(secs(60)).await });
            assert_eq!(diary.lines().len(), lines.len(), "{dropped:?}: nothing more begins");
            assert!(!dropped.ended || begun == Phase::ALL.len());
        },
    );
    assert!(polls >= 7, "{polls} polls");
}

/// TSK-6: the same ending can be asked for in code.
#[tokio::test(start_paused = true)]
async fn tsk_6_endings_can_be_matched() {
    let mut shutdown = at_once();
    let requests = shutdown.tracker(Phase::InFlight, "requests");
    let _one = requests.enter();
    let report = shutdown.run().await;
    assert!(matches!(report.parts()[0].outcome, PartOutcome::OutOfTime { left: Some(1) }));
}
