//! The judge's own memory: every acknowledgement in a file, on the disk before it counts.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What the hub has promised: this event is kept, and led to these deliveries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ack {
    pub(crate) event: String,
    pub(crate) deliveries: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Ack>,
    synced: Vec<Ack>,
    closed: bool,
}

impl Log {
    pub(crate) fn create(folder: &Path) -> Self {
        let path = folder.join("acknowledgements");
        let mut file = File::create(&path).unwrap();
        let shared = Arc::new(Shared { path, state: Mutex::default(), changed: Condvar::new() });
        let log = Log { shared: shared.clone() };
        thread::spawn(move || shared.write_all(&mut file));
        log
    }

    /// Returns when it is on the disk. Those that come at once share one wait for it.
    pub(crate) fn write(&self, ack: Ack) {
        let mut state = self.shared.state.lock().unwrap();
        state.waiting.push(ack);
        let number = state.synced.len() + state.waiting.len();
        self.shared.changed.notify_all();
        drop(self.shared.changed.wait_while(state, |state| state.synced.len() < number).unwrap());
    }

    /// What is on the disk, from this one on.
    pub(crate) fn since(&self, first: usize) -> Vec<Ack> {
        self.shared.state.lock().unwrap().synced[first..].to_vec()
    }

    pub(crate) fn len(&self) -> usize {
        self.shared.state.lock().unwrap().synced.len()
    }

    /// What the file says, for the verdict.
    pub(crate) fn read(&self) -> Vec<Ack> {
        let text = std::fs::read_to_string(&self.shared.path).unwrap();
        let read = text.lines().map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            Ack { event: words.next().unwrap(), deliveries: words.collect() }
        });
        read.collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The one that is left belongs to the thread that writes.
        if Arc::strong_count(&self.shared) == 2 {
            self.shared.state.lock().unwrap().closed = true;
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    fn write_all(&self, file: &mut File) {
        loop {
            let state = self.state.lock().unwrap();
            let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
            let state = self.changed.wait_while(state, idle).unwrap();
            if state.waiting.is_empty() {
                return;
            }
            // Left in its place until it is synced, so that numbers stay what they are.
            let batch = state.waiting.clone();
            drop(state);
            let mut text = String::new();
            for Ack { event, deliveries } in &batch {
                text.push_str(&format!("{event} {}\n", deliveries.join(" ")));
            }
            file.write_all(text.as_bytes()).unwrap();
            file.sync_data().unwrap();
            let mut state = self.state.lock().unwrap();
            state.waiting.drain(..batch.len());
            state.synced.extend(batch);
            self.changed.notify_all();
        }
    }
}
