//! The rules of the cache against a plain model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::shard::{Entry, Lease, Look, Shard};
use crate::clock::Tick;
use crate::secs;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody asks for at least the version that the database has.
    Ask {
        key: u8,
        versioned: bool,
    },
    /// The oldest, or the newest, load under way reads the database and will come back with what it saw.
    Read {
        newest: bool,
    },
    /// One that has read comes back.
    Land {
        newest: bool,
    },
    /// One comes back with an error.
    Fail,
    /// The database gets a new version, and then the key is invalidated.
    Write {
        key: u8,
    },
    /// The database gets a new version, and nobody is told.
    WriteInSecret {
        key: u8,
    },
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u8, any::<bool>()).prop_map(|(key, versioned)| Step::Ask { key, versioned }),
        3 => any::<bool>().prop_map(|newest| Step::Read { newest }),
        3 => any::<bool>().prop_map(|newest| Step::Land { newest }),
        1 => Just(Step::Fail),
        2 => (0..3_u8).prop_map(|key| Step::Write { key }),
        1 => (0..3_u8).prop_map(|key| Step::WriteInSecret { key }),
        1 => Just(Step::Wait),
    ];
    proptest::collection::vec(step, 1..120)
}

struct Loading {
    key: u8,
    lease: Lease,
    seen: Option<u64>,
}

fn pick<T>(list: &mut Vec<T>, newest: bool, wanted: impl Fn(&T) -> bool) -> Option<T> {
    let at = if newest { list.iter().rposition(wanted) } else { list.iter().position(wanted) };
    at.map(|at| list.remove(at))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// TSK-2, TSK-3: whatever callers, loads, writers and time do in which order, what is handed out was read from the
    /// database after the last invalidation of its key, or was loaded before it by a load that the caller joined before
    /// it; asked with a version, it is never older than that; and there is at most one load for a key that anybody can join.
    #[test]
    fn tsk_3_a_value_older_than_an_invalidation_is_never_stored_after_it(steps in steps()) {
        let mut shard = Shard::<u64>::new(2);
        let mut now = Tick::from_nanos(1);
        let mut database: BTreeMap<u8, u64> = BTreeMap::new();
        let mut invalidated_at: BTreeMap<u8, u64> = BTreeMap::new();
        let mut loading: Vec<Loading> = Vec::new();
        for step in steps {
            match step {
                Step::Ask { key, versioned } => {
                    let truth = *database.get(&key).unwrap_or(&1);
                    let version = if versioned { truth } else { 0 };
                    let look = shard.look(&key.to_string(), version, now);
                    if let Look::HitAndLoad(_, lease, _) | Look::Load(lease, _) = &look {
                        loading.push(Loading { key, lease: *lease, seen: None });
                    }
                    match look {
                        Look::Hit(value) | Look::HitAndLoad(value, ..) => {
                            let value = value.unwrap();
                            prop_assert!(value >= *invalidated_at.get(&key).unwrap_or(&0), "older than its invalidation");
                            prop_assert!(value >= version, "older than asked for");
                            prop_assert!(value <= truth);
                        }
                        Look::Join(_) | Look::Load(..) => {}
                    }
                }
                Step::Read { newest } => {
                    if let Some(mut load) = pick(&mut loading, newest, |load| load.seen.is_none()) {
                        load.seen = Some(*database.get(&load.key).unwrap_or(&1));
                        loading.push(load);
                    }
                }
                Step::Land { newest } => {
                    if let Some(load) = pick(&mut loading, newest, |load| load.seen.is_some()) {
                        let version = load.seen.unwrap();
                        let entry = Entry {
                            value: Some(version),
                            version,
                            refresh_at: now + secs(100),
                            fresh_until: now + secs(10),
                            dead_at: now + secs(10),
                        };
                        let (kept, _) = shard.store(&load.key.to_string(), load.lease, entry, now);
                        let floor = *invalidated_at.get(&load.key).unwrap_or(&0);
                        prop_assert!(!kept || version >= floor, "a load from before an invalidation was kept");
                    }
                }
                Step::Fail => {
                    if let Some(load) = pick(&mut loading, false, |_| true) {
                        shard.failed(&load.key.to_string(), load.lease, now);
                    }
                }
                Step::Write { key } => {
                    let truth = database.entry(key).or_insert(1);
                    *truth += 1;
                    invalidated_at.insert(key, *truth);
                    drop(shard.invalidate(&key.to_string()));
                }
                Step::WriteInSecret { key } => *database.entry(key).or_insert(1) += 1,
                Step::Wait => now = now + secs(4),
            }
            prop_assert!(shard.len() <= 2);
            prop_assert!(shard.loading() <= loading.len());
        }
    }
}
