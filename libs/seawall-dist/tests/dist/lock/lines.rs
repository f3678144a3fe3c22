#![cfg(feature = "tracing")]

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use seawall::{millis, secs};
use seawall_testkit::{ManualClock, run};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::support::{Behaviour, KEY, ScriptedLocks, builder, sleep};

/// Keeps each line as `LEVEL message key=value …`.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            let _ = write!(self.rest, " {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "seawall"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = format!("{} {}{}", event.metadata().level(), fields.message, fields.rest);
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// OBS-1: what locks do is written in the common format, with the key, the token and the cause.
#[test]
fn obs_1_locks_write_lines_in_the_common_format() {
    let lines = Lines::default();
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).wait(seawall_dist::lock::Wait::ONCE).build().unwrap();
    tracing::subscriber::with_default(lines.clone(), || {
        store.renewals.lock().unwrap().extend([Behaviour::Works, Behaviour::Fails]);
        store.releases.lock().unwrap().push_back(Behaviour::Fails);
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, millis(10)))).unwrap();
        clock.advance(secs(2));
        run(&clock, locks.with_lock(KEY, |_| sleep(&clock, secs(9)))).unwrap_err();
        store.acquires.lock().unwrap().push_back(Behaviour::Refuses);
        run(&clock, locks.with_lock(KEY, |_| async {})).unwrap_err();
    });
    let lines = lines.0.lock().unwrap();
    let has = |begin: &str, fields: &[&str]| {
        let found = lines
            .iter()
            .any(|line| line.starts_with(begin) && fields.iter().all(|field| line.contains(field)));
        assert!(found, "no `{begin}` with {fields:?} in {lines:#?}");
    };
    has(
        "INFO [Lock][Acquire] Success.",
        &[" key=lock:order:create:buyer:456", " fence=1", " attempts=1", " duration=0ms"],
    );
    has("WARN [Lock][Release] Failed!", &[" key=lock:order:create:buyer:456", " cause=release failed"]);
    has("WARN [Lock][Renew] Failed!", &[" key=lock:order:create:buyer:456", " cause=renew failed"]);
    has("WARN [Lock][Hold] Failed!", &[" fence=2", " cause=`lock:order:create:buyer:456` was lost"]);
    has("WARN [Lock][Acquire] Failed!", &[" attempts=1", " cause=`lock:order:create:buyer:456` is held"]);
}
