//! The workers: who gets which item, who goes on, what has ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::bits::Bits;
use super::config::Share;
use super::wake::Wakeups;
use super::workers::Workers;
use crate::task::{Panic, TaskError, panic};

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) workers: usize,
    pub(super) buffer: usize,
    pub(super) in_order: bool,
}

pub(super) type Outcome<T, W> = Result<<W as Workers<T>>::Output, TaskError<<W as Workers<T>>::Error>>;

/// An item by its number, and how it ended.
pub(super) type Ended<T, W> = (usize, Outcome<T, W>);

/// The workers of one run. They are polled in place; what runs on a task of its own is waited for in place.
pub(super) struct Pool<'a, T, W: Workers<T>> {
    work: W,
    rules: Rules,
    share: Share<'a, T>,
    /// Made when they are first needed: a thousand workers for three items are three.
    workers: Vec<Worker<T, W::Future>>,
    wakeups: Arc<Wakeups>,
    /// Those that can go on.
    todo: Bits,
    /// Those that can take another item.
    roomy: Bits,
    turn: usize,
    /// So many items may be open: taken, and their results not yet given out.
    capacity: usize,
    /// An item whose worker has no room, and which must not be given to another.
    stuck: Option<(usize, usize, T)>,
    taken: usize,
    given: usize,
    /// Results that came before their turn, the next one in front; in order only.
    early: VecDeque<Option<Outcome<T, W>>>,
}

struct Worker<T, F> {
    /// The item under way. In one box for the whole run, so that an item costs no allocation.
    future: Pin<Box<Option<F>>>,
    item: usize,
    waiting: VecDeque<(usize, T)>,
    waker: Waker,
}

impl<T, F> Worker<T, F> {
    fn is_idle(&self) -> bool {
        self.future.is_none()
    }

    fn items(&self) -> usize {
        self.waiting.len() + usize::from(!self.is_idle())
    }
}

impl<'a, T, W: Workers<T>> Pool<'a, T, W> {
    pub(super) fn new(work: W, rules: Rules, share: Share<'a, T>) -> Self {
        Pool {
            work,
            rules,
            share,
            workers: Vec::new(),
            wakeups: Wakeups::new(rules.workers),
            todo: Bits::none(rules.workers),
            roomy: Bits::all(rules.workers),
            turn: 0,
            capacity: rules.workers.saturating_mul(rules.buffer.saturating_add(1)),
            stuck: None,
            taken: 0,
            given: 0,
            early: VecDeque::new(),
        }
    }

    /// How many items were taken so far.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// How many results were given out so far.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// Whether another item may be taken from the input.
    pub(super) fn has_room(&self) -> bool {
        self.stuck.is_none() && self.taken - self.given < self.capacity
    }

    /// Takes an item, and begins with it if its worker is idle. A result comes back if there is one to give out already.
    #[inline]
    pub(super) fn take(&mut self, item: T) -> Option<Ended<T, W>> {
        // First of all, because it is the caller's code and may panic.
        let at = self.worker_for(&item);
        let index = self.taken;
        self.taken += 1;
        if !self.roomy.contains(at) {
            self.stuck = Some((at, index, item));
            return None;
        }
        let worker = &self.workers[at];
        if !worker.is_idle() || !worker.waiting.is_empty() {
            // An idle one with items waiting is about to go on with them: it is among those that `go_on` looks at.
            self.hand(at, index, item);
            return None;
        }
        match self.begin(at, index, item) {
            Poll::Ready(outcome) => self.in_turn((index, outcome)),
            Poll::Pending => {
                if self.rules.buffer == 0 {
                    self.roomy.remove(at);
                }
                None
            }
        }
    }

    /// Lets those go on that were woken, each once, until a result can be given out.
    pub(super) fn go_on(&mut self) -> Option<Ended<T, W>> {
        self.wakeups.awake();
        if let Some(early) = self.next_early() {
            return Some(early);
        }
        self.wakeups.take(&mut self.todo);
        // A worker that has ended one item and has another waiting is put back, and is looked at in this loop too.
        while let Some(at) = self.todo.pop() {
            if let Some(ended) = self.step(at).and_then(|ended| self.in_turn(ended)) {
                return Some(ended);
            }
        }
        None
    }

    /// Says who is to be woken. False if there is something to do already.
    pub(super) fn sleep(&self, waker: &Waker) -> bool {
        self.wakeups.sleep(waker)
    }

    fn worker_for(&mut self, item: &T) -> usize {
        let at = match &self.share {
            Share::InTurn => {
                let next = self.roomy.next_from(self.turn).expect("nothing is taken unless there is room");
                self.turn = if next + 1 == self.rules.workers { 0 } else { next + 1 };
                next
            }
            Share::LeastBusy => {
                let least = self.workers.iter().enumerate().min_by_key(|(_, worker)| worker.items());
                match least {
                    Some((at, worker)) if worker.is_idle() || self.workers.len() == self.rules.workers => at,
                    _ => self.workers.len(),
                }
            }
            Share::ByKey(key) => (key(item) % self.rules.workers as u64) as usize,
        };
        while self.workers.len() <= at {
            let waker = self.wakeups.waker(self.workers.len());
            self.workers.push(Worker { future: Box::pin(None), item: 0, waiting: VecDeque::new(), waker });
        }
        at
    }

    fn hand(&mut self, at: usize, index: usize, item: T) {
        let worker = &mut self.workers[at];
        worker.waiting.push_back((index, item));
        if worker.items() > self.rules.buffer {
            self.roomy.remove(at);
        }
    }

    /// Lets a worker go on with its item, or begin with the next one. A result if the item has ended.
    fn step(&mut self, at: usize) -> Option<Ended<T, W>> {
        let worker = &mut self.workers[at];
        let polled = if worker.is_idle() {
            let (index, item) = worker.waiting.pop_front()?;
            self.begin(at, index, item)
        } else {
            let mut context = Context::from_waker(&worker.waker);
            outcome::<T, W>(panic::poll(worker.future.as_mut(), &mut context))
        };
        match polled {
            Poll::Ready(outcome) => Some(self.end(at, outcome)),
            Poll::Pending => None,
        }
    }

    #[inline]
    fn begin(&mut self, at: usize, index: usize, item: T) -> Poll<Outcome<T, W>> {
        let worker = &mut self.workers[at];
        worker.item = index;
        let mut context = Context::from_waker(&worker.waker);
        outcome::<T, W>(panic::start(worker.future.as_mut(), || self.work.start(item), &mut context))
    }

    fn end(&mut self, at: usize, outcome: Outcome<T, W>) -> Ended<T, W> {
        if let Some((_, index, item)) = self.stuck.take_if(|(worker, ..)| *worker == at) {
            self.hand(at, index, item);
        }
        let worker = &self.workers[at];
        if !worker.waiting.is_empty() {
            self.todo.insert(at);
        }
        if worker.items() <= self.rules.buffer {
            self.roomy.insert(at);
        }
        (worker.item, outcome)
    }

    /// The result if it is its turn to be given out; else it is kept.
    fn in_turn(&mut self, (index, outcome): Ended<T, W>) -> Option<Ended<T, W>> {
        if !self.rules.in_order {
            self.given += 1;
            return Some((index, outcome));
        }
        let ahead = index - self.given;
        if self.early.len() <= ahead {
            self.early.resize_with(ahead + 1, || None);
        }
        self.early[ahead] = Some(outcome);
        self.next_early()
    }

    fn next_early(&mut self) -> Option<Ended<T, W>> {
        let outcome = self.early.pop_front_if(|first| first.is_some())??;
        self.given += 1;
        Some((self.given - 1, outcome))
    }
}

#[inline]
fn outcome<T, W: Workers<T>>(polled: Poll<Result<Outcome<T, W>, Panic>>) -> Poll<Outcome<T, W>> {
    polled.map(|caught| caught.unwrap_or_else(|panic| Err(TaskError::Panicked(panic))))
}
