//! A pool of workers over a batch or a stream of items.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use seawall::task::{Dispatcher, TaskError};
use seawall::{Time, millis};
use seawall_testkit::{ManualClock, drop_at_every_poll, poll_once, run};

/// Counts what is under way; leaving is dropping.
#[derive(Clone, Default)]
struct UnderWay(Arc<(AtomicUsize, AtomicUsize)>);

struct Inside(UnderWay);

impl UnderWay {
    fn enter(&self) -> Inside {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        Inside(self.clone())
    }

    fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn sleep(hands: &ManualClock, wait: Duration) -> impl Future<Output = ()> + use<> {
    hands.sleep_until(hands.now() + wait)
}

fn next<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// Fails for every hundredth item from 7, panics for every hundredth from 42, and gives the square of the rest.
fn work_on(item: u64) -> Result<u64, String> {
    match item % 100 {
        7 => Err(format!("no {item}")),
        // A panic without the hook, so that the log of the tests stays short.
        42 => resume_unwind(Box::new(format!("item {item}"))),
        _ => Ok(item * item),
    }
}

fn assert_exactly_those(results: &[Result<u64, TaskError<String>>]) {
    assert_eq!(results.len(), 10_000);
    for (item, result) in (0u64..).zip(results) {
        match (item % 100, result) {
            (7, Err(TaskError::Failed(error))) => assert_eq!(*error, format!("no {item}")),
            (42, Err(TaskError::Panicked(panic))) => assert_eq!(panic.message(), format!("item {item}")),
            (_, Ok(square)) => assert_eq!(*square, item * item),
            (_, other) => unreachable!("item {item} ended with {other:?}"),
        }
    }
}

/// TSK-4: of 10 000 items one in a hundred fails and one in a hundred panics: exactly those results are bad.
#[test]
fn tsk_4_what_goes_wrong_with_one_item_stays_with_it() {
    let hands = ManualClock::new();
    let handler = async |item: u64| {
        if item.is_multiple_of(3) {
            sleep(&hands, millis(item % 7)).await;
        }
        work_on(item)
    };
    let dispatcher = || Dispatcher::new(handler).workers(16);
    assert_exactly_those(&run(&hands, dispatcher().run(0..10_000)));
    assert_exactly_those(&run(&hands, dispatcher().buffer(3).run(0..10_000)));
    assert_exactly_those(&run(&hands, dispatcher().buffer(3).least_busy().run(0..10_000)));
    assert_exactly_those(&run(&hands, dispatcher().by_key(|item| item % 50).run(0..10_000)));
    assert_exactly_those(&run(&hands, dispatcher().workers(200).run(0..10_000)));
    assert_eq!(hands.sleepers_waiting(), 0);
}

/// TSK-4: the same on the threads of a runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tsk_4_what_goes_wrong_with_one_task_stays_with_it() {
    let handler = |item: u64| async move {
        if item.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        work_on(item)
    };
    assert_exactly_those(&Dispatcher::new(handler).workers(16).on_tasks().run(0..10_000).await);
    let by_key = Dispatcher::new(handler).workers(5).by_key(|item| item % 50).on_tasks();
    assert_exactly_those(&by_key.run(0..10_000).await);
}

/// TSK-4: a panic before there is a future, in its poll and in its drop are all the item's own.
#[test]
fn tsk_4_a_panic_anywhere_in_a_handler_is_the_items_result() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            resume_unwind(Box::new("in drop"));
        }
    }
    let hands = ManualClock::new();
    let handler = |item: u32| -> Pin<Box<dyn Future<Output = Result<u32, ()>>>> {
        match item {
            0 => resume_unwind(Box::new("at once")),
            1 => Box::pin(async { resume_unwind(Box::new("in poll")) }),
            2 => {
                let bomb = Bomb;
                Box::pin(poll_fn(move |_| {
                    let _armed = &bomb;
                    Poll::Ready(Ok(2))
                }))
            }
            _ => Box::pin(async move { Ok(item) }),
        }
    };
    let results = run(&hands, Dispatcher::new(handler).workers(1).run(0..4));
    let said: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().map_err(|error| error.panicked().unwrap().message()))
        .collect();
    assert_eq!(said, [Err("at once"), Err("in poll"), Err("in drop"), Ok(&3)]);
    let said = results[0].as_ref().unwrap_err().to_string();
    assert_eq!(said, "panicked: at once");
}

/// TSK-4: as many at once as there are workers and no more; time passes for all of them together.
#[test]
fn tsk_4_so_many_workers_work_at_once() {
    for workers in [1, 3, 64, 65, 1000] {
        let (hands, under_way) = (ManualClock::new(), UnderWay::default());
        let began = hands.now();
        let handler = async |_: u32| {
            let _inside = under_way.enter();
            sleep(&hands, millis(10)).await;
            Ok::<_, ()>(())
        };
        run(&hands, Dispatcher::new(handler).workers(workers).run(0..300));
        assert_eq!((under_way.most(), under_way.now()), (workers.min(300), 0));
        let rounds = 300_usize.div_ceil(workers) as u128;
        assert_eq!(hands.now().since(began).as_millis(), 10 * rounds, "{workers} workers");
    }
    let nobody =
        run(&ManualClock::new(), Dispatcher::new(async |_: u32| Ok::<_, ()>(())).workers(0).run([1]));
    assert!(nobody[0].is_ok(), "there is always one worker");
    let nothing = run(&ManualClock::new(), Dispatcher::new(async |_: u32| Ok::<_, ()>(())).run([]));
    assert!(nothing.is_empty());
}

/// TSK-4: a stream gives results as they come, and in order if asked.
#[test]
fn tsk_4_a_stream_gives_results_as_they_come_or_in_order() {
    let hands = ManualClock::new();
    let waits = [50, 10, 30, 20, 0, 5];
    let handler = async |wait: u64| {
        sleep(&hands, millis(wait)).await;
        Ok::<_, ()>(wait)
    };
    let collect = |dispatcher: Dispatcher<'_, _, _>| {
        run(&hands, async {
            let (mut results, mut order) = (dispatcher.stream(waits), Vec::new());
            while let Some(done) = results.next().await {
                assert_eq!(waits[done.index], done.result.unwrap());
                order.push(done.index);
            }
            order
        })
    };
    assert_eq!(collect(Dispatcher::new(handler).workers(6)), [4, 5, 1, 3, 2, 0]);
    assert_eq!(collect(Dispatcher::new(handler).workers(2)), [1, 2, 0, 4, 5, 3]);
    for buffer in 0..4 {
        let in_order = collect(Dispatcher::new(handler).workers(2).buffer(buffer).in_order());
        assert_eq!(in_order, [0, 1, 2, 3, 4, 5], "buffer of {buffer}");
    }
    assert_eq!(collect(Dispatcher::new(handler).by_key(|_| 1).workers(3)), [0, 1, 2, 3, 4, 5]);
}

/// TSK-4: items of one key run one after another and in order, whatever the others do.
#[test]
fn tsk_4_items_of_one_key_run_one_after_another_in_order() {
    for (workers, buffer) in [(1, 0), (4, 0), (4, 8), (7, 2)] {
        let hands = ManualClock::new();
        let (seen, at_work) = (RefCell::new(HashMap::<u32, Vec<u32>>::new()), Cell::new(0_usize));
        let (busy, most) = (RefCell::new(HashMap::<u32, bool>::new()), Cell::new(0));
        let handler = async |item: u32| {
            let key = item * 7919 % 13;
            assert_ne!(busy.borrow_mut().insert(key, true), Some(true), "two of key {key} at once");
            at_work.set(at_work.get() + 1);
            most.set(most.get().max(at_work.get()));
            sleep(&hands, millis(u64::from(item * 31 % 11))).await;
            seen.borrow_mut().entry(key).or_default().push(item);
            busy.borrow_mut().insert(key, false);
            at_work.set(at_work.get() - 1);
            Ok::<_, ()>(())
        };
        let dispatcher =
            Dispatcher::new(handler).workers(workers).buffer(buffer).by_key(|item| item * 7919 % 13);
        let results = run(&hands, dispatcher.run(0..500));
        assert!(results.iter().all(Result::is_ok));
        assert!(seen.borrow().values().all(|items| items.is_sorted()), "{workers} workers");
        assert_eq!(seen.borrow().values().map(Vec::len).sum::<usize>(), 500);
        assert!(most.get() <= workers && (workers == 1 || most.get() > 1), "{} of {workers}", most.get());
    }
}

/// TSK-4: nothing is taken from the input before it is asked for, and never more than fits.
#[test]
fn tsk_4_the_input_is_pulled_only_as_fast_as_results_are_taken() {
    for (workers, buffer, in_order) in
        [(3, 0, false), (3, 2, false), (3, 0, true), (3, 2, true), (65, 1, true)]
    {
        let (pulled, hands) = (Cell::new(0_usize), ManualClock::new());
        let items = std::iter::repeat_with(|| pulled.set(pulled.get() + 1));
        // The first item takes longest, so that in order all others wait for it.
        let handler = async |(): ()| {
            let wait = if pulled.get() == 1 { 1000 } else { 10 };
            sleep(&hands, millis(wait)).await;
            Ok::<_, ()>(())
        };
        let mut dispatcher = Dispatcher::new(handler).workers(workers).buffer(buffer);
        if in_order {
            dispatcher = dispatcher.in_order();
        }
        let mut results = dispatcher.stream(items);
        assert_eq!(pulled.get(), 0, "nothing before the first poll");
        let mut taken = 0;
        for _ in 0..400 {
            match next(&mut results) {
                Poll::Ready(done) => taken += usize::from(done.is_some()),
                Poll::Pending => {
                    assert_eq!(
                        pulled.get() - taken,
                        workers * (1 + buffer),
                        "all there is room for is taken"
                    );
                    assert!(hands.advance_to_next());
                }
            }
            assert!(pulled.get() - taken <= workers * (1 + buffer), "{} pulled, {taken} taken", pulled.get());
        }
        assert!(taken > 50, "{taken} results in 400 polls");
    }
}

/// TSK-4: where all items have one key, one is under way, so many wait, and one is in the hand; the rest stays where it is.
#[test]
fn tsk_4_a_busy_key_stops_the_input() {
    for buffer in 0..4 {
        let pulled = Cell::new(0);
        let items = (0..100).inspect(|_| pulled.set(pulled.get() + 1));
        let handler = async |_: u32| pending::<Result<(), ()>>().await;
        let mut results = Dispatcher::new(handler).workers(9).buffer(buffer).by_key(|_| "one").stream(items);
        assert!(next(&mut results).is_pending());
        assert_eq!(pulled.get(), 1 + buffer + 1);
    }
}

/// TSK-4: an item waits behind a slow one only where it may; the least busy worker gets it if asked.
#[test]
fn tsk_4_in_turn_is_even_and_least_busy_goes_round_the_slow() {
    let hands = ManualClock::new();
    let handler = async |wait: u64| {
        sleep(&hands, millis(wait)).await;
        Ok::<_, ()>(())
    };
    let order = |dispatcher: Dispatcher<'_, u64, _>| {
        run(&hands, async {
            let (arrivals, mut order) = (Trickle::new(&hands, vec![1000, 1, 1, 1]), Vec::new());
            let mut results = dispatcher.stream_of(arrivals);
            while let Some(done) = results.next().await {
                order.push(done.index);
            }
            order
        })
    };
    assert_eq!(order(Dispatcher::new(handler).workers(2)), [1, 2, 3, 0], "nobody waits without a buffer");
    assert_eq!(order(Dispatcher::new(handler).workers(2).buffer(1)), [1, 3, 0, 2], "each in turn");
    assert_eq!(order(Dispatcher::new(handler).workers(2).buffer(1).least_busy()), [1, 2, 3, 0]);
}

/// Items that come every 10 ms.
struct Trickle {
    hands: ManualClock,
    items: std::vec::IntoIter<u64>,
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Trickle {
    fn new(hands: &ManualClock, items: Vec<u64>) -> Self {
        let wait = Box::pin(sleep(hands, millis(10)));
        Trickle { hands: hands.clone(), items: items.into_iter(), wait }
    }
}

impl Stream for Trickle {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        std::task::ready!(self.wait.as_mut().poll(cx));
        self.wait = Box::pin(sleep(&self.hands, millis(10)));
        Poll::Ready(self.items.next())
    }
}

/// TSK-4: progress counts every item, and knows how many there are if the input does.
#[test]
fn tsk_4_progress_is_told_after_each_item() {
    let told = Mutex::new(Vec::new());
    let tell = |done, total| told.lock().unwrap().push((done, total));
    let hands = ManualClock::new();
    let handler = async |item: u32| if item == 2 { Err(()) } else { Ok(()) };
    run(&hands, Dispatcher::new(handler).progress(tell).run([1, 2, 3]));
    assert_eq!(*told.lock().unwrap(), [(1, Some(3)), (2, Some(3)), (3, Some(3))]);
    told.lock().unwrap().clear();
    run(&hands, Dispatcher::new(handler).progress(tell).run((1..6).filter(|item| item % 2 == 1)));
    let known = told.lock().unwrap().iter().map(|&(done, total)| (done, total.is_some())).collect::<Vec<_>>();
    assert_eq!(known, [(1, false), (2, false), (3, true)], "known as soon as the input can say no more");
}

/// TSK-4, PRM-4: dropped at any poll, nothing goes on.
#[test]
fn tsk_4_a_run_dropped_at_any_poll_leaves_nothing() {
    for in_order in [false, true] {
        let polls = drop_at_every_poll(
            || (ManualClock::new(), UnderWay::default()),
            |(hands, under_way)| {
                Box::pin(async move {
                    let handler = async |item: u64| {
                        let _inside = under_way.enter();
                        sleep(hands, millis(item * 37 % 11)).await;
                        sleep(hands, millis(3)).await;
                        work_on(item)
                    };
                    let mut dispatcher =
                        Dispatcher::new(handler).workers(4).buffer(1).by_key(|item| item % 5);
                    if in_order {
                        dispatcher = dispatcher.in_order();
                    }
                    let mut results = dispatcher.stream(0..50);
                    while results.next().await.is_some() {}
                })
            },
            |(hands, _)| {
                hands.advance_to_next();
            },
            |(hands, under_way), dropped| {
                assert_eq!((under_way.now(), hands.sleepers_waiting()), (0, 0), "{dropped:?}");
            },
        );
        assert!(polls >= 20, "{polls} polls");
    }
}

/// TSK-4: dropping the run ends its tasks too.
#[tokio::test]
async fn tsk_4_tasks_end_with_the_run_that_is_dropped() {
    let under_way = UnderWay::default();
    let handler = {
        let under_way = under_way.clone();
        move |_: u32| {
            let inside = under_way.enter();
            async move {
                let _inside = inside;
                pending::<Result<(), ()>>().await
            }
        }
    };
    let mut all = Box::pin(Dispatcher::new(handler).workers(5).on_tasks().run(0..100));
    assert!(poll_once(all.as_mut()).is_pending());
    while under_way.now() < 5 {
        tokio::task::yield_now().await;
    }
    drop(all);
    while under_way.now() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(under_way.most(), 5);
}

/// TSK-4: a worker that waits is not polled because another one was woken.
#[test]
fn tsk_4_only_those_are_polled_that_can_go_on() {
    let (hands, polls) = (ManualClock::new(), Cell::new(0));
    let handler = async |item: u64| {
        if item == 0 {
            let mut long = pin!(sleep(&hands, millis(1_000_000)));
            poll_fn(|cx| {
                polls.set(polls.get() + 1);
                long.as_mut().poll(cx)
            })
            .await;
        } else {
            sleep(&hands, millis(1)).await;
        }
        Ok::<_, ()>(())
    };
    run(&hands, Dispatcher::new(handler).workers(3).run(0..1000));
    assert_eq!(polls.get(), 2, "once to begin and once to end");
}

/// TSK-4: handlers that never wait let other tasks have their turn.
#[tokio::test]
async fn tsk_4_a_long_run_does_not_keep_others_waiting() {
    let (turns, done) = (Cell::new(0), Cell::new(0));
    let all = async {
        let results =
            Dispatcher::new(async |_: u32| Ok::<_, ()>(())).progress(|_, _| ()).run(0..100_000).await;
        done.set(results.len());
    };
    let others = async {
        while done.get() == 0 {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(all, others);
    assert!(turns.get() > 10, "{} turns", turns.get());
}

/// TSK-4: results can be taken on another thread, if what they are made of can.
#[test]
fn tsk_4_runs_and_streams_are_sent() {
    fn sent<T: Send>(_: &T) {}
    let handler = async |item: &str| Ok::<_, std::io::Error>(item.len());
    sent(&Dispatcher::new(handler).by_key(|item| item.len()).progress(|_, _| ()).run(["a"]));
    sent(&Dispatcher::new(handler).stream(["a"]));
}

/// TSK-4: an item costs no allocation, however many there are: each worker keeps its place.
#[test]
fn tsk_4_an_item_costs_no_allocation() {
    let work = |items: u32| {
        let count = allocation_counter::measure(|| {
            let handler = |item| {
                let mut yielded = false;
                poll_fn(move |cx| {
                    if std::mem::replace(&mut yielded, true) {
                        return Poll::Ready(Ok::<_, ()>(item));
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
            };
            let mut results = Dispatcher::new(handler).workers(8).stream(0..items);
            let mut done = 0;
            while done < items {
                done += u32::from(matches!(next(&mut results), Poll::Ready(Some(_))));
            }
        });
        count.count_total
    };
    assert_eq!(work(10_000), work(1_000));
}

/// TSK-4, PRM-4: whatever the settings and whatever the items do, every item has its own result, no more than allowed are
/// open, keys keep their order, results theirs if asked, and nobody waits for ever.
#[test]
fn tsk_4_random_runs_keep_every_promise() {
    for seed in 0..400_u64 {
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (workers, buffer, items) = (below(70) as usize + 1, below(4) as usize, below(150));
        let (share, in_order, keys) = (below(3), below(2) == 0, below(9) + 1);
        let plan: Vec<_> = (0..items).map(|_| (below(4), below(20), below(10), below(keys))).collect();

        let (hands, pulled, given) = (ManualClock::new(), Cell::new(0_usize), Cell::new(0_usize));
        let begun = RefCell::new(HashMap::<u64, Vec<u64>>::new());
        let busy = RefCell::new(HashMap::<u64, usize>::new());
        let handler = async |item: u64| {
            let (waits, wait, ending, key) = plan[item as usize];
            begun.borrow_mut().entry(key).or_default().push(item);
            let now = busy.borrow().get(&key).copied().unwrap_or(0);
            assert!(share != 2 || now == 0, "seed {seed}: two of key {key} at once");
            busy.borrow_mut().insert(key, now + 1);
            for _ in 0..waits {
                sleep(&hands, millis(wait)).await;
            }
            *busy.borrow_mut().get_mut(&key).unwrap() -= 1;
            match ending {
                0 => Err(item),
                1 => resume_unwind(Box::new(format!("{item}"))),
                _ => Ok(item),
            }
        };
        let mut dispatcher = Dispatcher::new(handler).workers(workers);
        dispatcher = match share {
            0 => dispatcher,
            1 => dispatcher.least_busy(),
            _ => dispatcher.by_key(|item| plan[*item as usize].3),
        };
        dispatcher = if in_order { dispatcher.in_order() } else { dispatcher };
        let input = (0..items).inspect(|_| {
            pulled.set(pulled.get() + 1);
            assert!(pulled.get() - given.get() <= workers * (1 + buffer), "seed {seed}: too many are open");
        });
        let mut results = dispatcher.buffer(buffer).stream(input);
        let mut seen = vec![false; items as usize];
        run(&hands, async {
            while let Some(done) = results.next().await {
                assert!(!std::mem::replace(&mut seen[done.index], true), "seed {seed}: a result came twice");
                assert!(!in_order || done.index == given.get(), "seed {seed}: out of order");
                given.set(given.get() + 1);
                let right = match (plan[done.index].2, done.result) {
                    (0, Err(TaskError::Failed(item))) => item == done.index as u64,
                    (1, Err(TaskError::Panicked(panic))) => panic.message() == done.index.to_string(),
                    (2.., Ok(item)) => item == done.index as u64,
                    _ => false,
                };
                assert!(right, "seed {seed}: item {} has somebody else's result", done.index);
            }
        });
        assert_eq!((given.get() as u64, hands.sleepers_waiting()), (items, 0), "seed {seed}");
        assert!(share != 2 || begun.borrow().values().all(|items| items.is_sorted()), "seed {seed}");
    }
}
