//! A peer that writes down all that it gets, and answers by its mood.

use seawall_testkit::http::HttpMessage;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::chance::number_of;
use super::load::ORDERED;
use crate::harness::header;

/// How it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerBehavior {
    /// 200, at once.
    Kind,
    /// By chance: mostly 200, soon or later; else 500, 503, 422, nothing at all, or it hangs up. After two failures a
    /// delivery is taken, so that its back-off stays short.
    Moody,
    /// Not yet: it takes the request, and waits for another mood.
    Silent,
    /// 200, after this many milliseconds.
    Slow(u64),
    /// It takes the request, and never answers it.
    Hanging,
    /// A third each: 200, 500 and then 200, or it hangs and then says 200.
    Mixed,
    /// It takes so many, says 422 to so many more, and is kind to those behind them.
    Refuses { after: u32, many: u32 },
}

impl PeerBehavior {
    /// 422, at once.
    pub(crate) const REFUSING: PeerBehavior = PeerBehavior::Refuses { after: 0, many: u32::MAX };
}

/// A delivery that has come.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) event: String,
    pub(crate) rule: String,
    /// Which life of the hub sent it.
    pub(crate) life: u32,
    pub(crate) at: Instant,
    /// Whether the sink means to fail it, so that the hub may wait before it tries again.
    pub(crate) failed: bool,
    /// What was answered, and how long after it came.
    pub(crate) answer: Option<(u16, Duration)>,
}

impl Arrival {
    /// Whether it was the last word about the delivery.
    pub(crate) fn settled(&self) -> bool {
        matches!(self.answer, Some((200 | 422, _)))
    }
}

#[derive(Clone)]
pub(crate) struct Sink {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    seed: u64,
    life: AtomicU32,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    mood: PeerBehavior,
    open: usize,
    seen: HashMap<String, Vec<Arrival>>,
}

enum Answer {
    Status(u16, Duration),
    HangUp,
    Hang,
}

impl Sink {
    pub(crate) fn start(seed: u64, mood: PeerBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            address: listener.local_addr().unwrap().to_string(),
            seed,
            life: AtomicU32::new(0),
            state: Mutex::new(State { mood, open: 0, seen: HashMap::new() }),
            changed: Condvar::new(),
        });
        let sink = Sink { shared: shared.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.state.lock().unwrap().open += 1;
                let shared = shared.clone();
                thread::spawn(move || {
                    // An error is a hub that is gone.
                    let _ = shared.serve(stream);
                    shared.state.lock().unwrap().open -= 1;
                    shared.changed.notify_all();
                });
            }
        });
        sink
    }

    pub(crate) fn address(&self) -> &str {
        &self.shared.address
    }

    pub(crate) fn be(&self, mood: PeerBehavior) {
        self.shared.state.lock().unwrap().mood = mood;
        self.shared.changed.notify_all();
    }

    /// A hub is dead: takes in all that it has sent, and only then begins the next life. Without this, what the dead one
    /// has left in the sockets would look like the work of the next.
    pub(crate) fn next_life(&self) -> u32 {
        let mut last = TcpStream::connect(&self.shared.address).unwrap();
        last.write_all(b"GET /last HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
        // Connections are taken in order, so when this one is answered, all before it have been taken.
        let _ = last.read(&mut [0; 64]).unwrap();
        drop(last);
        let state = self.shared.state.lock().unwrap();
        drop(self.shared.changed.wait_while(state, |state| state.open > 0).unwrap());
        self.shared.life.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn seen(&self) -> HashMap<String, Vec<Arrival>> {
        self.shared.state.lock().unwrap().seen.clone()
    }

    /// How many different deliveries have come.
    pub(crate) fn count(&self) -> usize {
        self.shared.state.lock().unwrap().seen.len()
    }

    /// What it has seen, and forgets.
    pub(crate) fn take(&self) -> HashMap<String, Vec<Arrival>> {
        std::mem::take(&mut self.shared.state.lock().unwrap().seen)
    }

    /// Of these deliveries, those that have not come in this life.
    pub(crate) fn missing(&self, owed: &HashSet<String>, life: u32) -> usize {
        let state = self.shared.state.lock().unwrap();
        let came = |delivery: &String| {
            state.seen.get(delivery).is_some_and(|all| all.iter().any(|one| one.life == life))
        };
        owed.iter().filter(|delivery| !came(delivery)).count()
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        loop {
            let HttpMessage { head, .. } = HttpMessage::read(&mut stream)?;
            let Some(delivery) = header(&head, "seawall-delivery") else {
                return stream.get_mut().write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n");
            };
            let path: Vec<&str> = head.split(' ').nth(1).unwrap().split('/').collect();
            let (rule, event) = (path[1].to_owned(), path[2].to_owned());
            let answer = self.answer(&rule, &event, delivery);
            let at = Instant::now();
            let failed = !matches!(answer, Answer::Status(200 | 422, _));
            let life = self.life.load(Ordering::SeqCst);
            let number = self.note(delivery, Arrival { event, rule, life, at, failed, answer: None });
            match answer {
                Answer::Status(status, wait) => {
                    thread::sleep(wait);
                    let state = self.state.lock().unwrap();
                    let mut state =
                        self.changed.wait_while(state, |state| state.mood == PeerBehavior::Silent).unwrap();
                    // Noted under the same lock: whoever hears of it from the hub finds it here.
                    let message = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok");
                    stream.get_mut().write_all(message.as_bytes())?;
                    if let Some(all) = state.seen.get_mut(delivery) {
                        all[number].answer = Some((status, at.elapsed()));
                    }
                }
                Answer::HangUp => return Ok(()),
                // Until the hub has had enough, or is dead.
                Answer::Hang => return stream.read(&mut [0]).map(drop),
            }
        }
    }

    fn note(&self, delivery: &str, arrival: Arrival) -> usize {
        let mut state = self.state.lock().unwrap();
        let arrivals = state.seen.entry(delivery.to_owned()).or_default();
        arrivals.push(arrival);
        arrivals.len() - 1
    }

    fn answer(&self, rule: &str, event: &str, delivery: &str) -> Answer {
        let mut state = self.state.lock().unwrap();
        let before = state.seen.get(delivery).map_or(0, Vec::len);
        match &mut state.mood {
            PeerBehavior::Kind | PeerBehavior::Silent => return Answer::Status(200, Duration::ZERO),
            PeerBehavior::Slow(millis) => return Answer::Status(200, Duration::from_millis(*millis)),
            PeerBehavior::Hanging => return Answer::Hang,
            PeerBehavior::Mixed => {
                return match (number_of(self.seed, &[rule, event]) % 3, before) {
                    (0, 0) => Answer::Status(500, Duration::ZERO),
                    (1, 0..4) => Answer::Hang,
                    _ => Answer::Status(200, Duration::ZERO),
                };
            }
            PeerBehavior::Refuses { after: 0, many: 0 } => return Answer::Status(200, Duration::ZERO),
            PeerBehavior::Refuses { after: 0, many } => {
                *many -= 1;
                return Answer::Status(422, Duration::ZERO);
            }
            PeerBehavior::Refuses { after, .. } => {
                *after -= 1;
                return Answer::Status(200, Duration::ZERO);
            }
            PeerBehavior::Moody => {}
        }
        let number = number_of(self.seed, &[rule, event]);
        let later = Duration::from_millis(number / 100 % 200);
        match (number % 100, before) {
            // Others wait behind it, and not for its back-off.
            _ if rule == ORDERED => Answer::Status(200, later / 4),
            (0..3, _) => Answer::Status(422, Duration::ZERO),
            (3..8, 0) => Answer::Status(500, Duration::ZERO),
            (8..12, 0..2) => Answer::Status(503, later),
            (12..15, 0) => Answer::Hang,
            (15..20, 0) => Answer::HangUp,
            (20..50, _) => Answer::Status(200, later),
            _ => Answer::Status(200, Duration::ZERO),
        }
    }
}
