use super::*;
use proptest::prelude::*;

const A: Fingerprint = [1; 32];
const B: Fingerprint = [2; 32];

fn wants(fingerprint: Fingerprint, token: u64) -> Claim {
    Claim { fingerprint, token, lease: 100 }
}

/// CRD-2: the first runs, the second is told that it is in flight, later ones get the stored result, another body is refused.
#[test]
fn crd_2_work_under_a_key_happens_once() {
    let ClaimDecision::Run(entry) = claim(Entry::Absent, &wants(A, 1), 0) else { panic!("it is free") };
    assert_eq!(entry, Entry::InFlight { fingerprint: A, token: 1, until: 100 });
    assert_eq!(claim(entry, &wants(A, 2), 50), ClaimDecision::InFlight { until: 100 });
    assert_eq!(claim(entry, &wants(B, 2), 50), ClaimDecision::Mismatch);
    let done = Entry::Done { fingerprint: A, until: 1_000 };
    assert_eq!(claim(done, &wants(A, 2), 50), ClaimDecision::Replay);
    assert_eq!(claim(done, &wants(B, 2), 50), ClaimDecision::Mismatch);
    assert!(matches!(claim(done, &wants(B, 2), 1_000), ClaimDecision::Run(_)), "forgotten after its time");
}

/// CRD-2. Trap "in-flight marker expires while the first still runs": it is taken over after the lease and not before, and
/// the late first one can't overwrite the second's result.
#[test]
fn crd_2_a_late_first_one_changes_nothing() {
    let first = Entry::InFlight { fingerprint: A, token: 1, until: 100 };
    assert_eq!(renew(first, 1, 100, 99), Some(Entry::InFlight { fingerprint: A, token: 1, until: 199 }));
    assert_eq!(renew(first, 1, 100, 100), None, "a lease that ran out is not renewed");
    assert_eq!(renew(first, 2, 100, 50), None);
    let ClaimDecision::Run(second) = claim(first, &wants(A, 2), 100) else { panic!("the lease is over") };
    assert!(!may_write(second, 1) && may_write(second, 2));
    assert!(!may_write(Entry::Done { fingerprint: A, until: 9 }, 1));
    assert_eq!(
        claim(first, &wants(B, 2), 100),
        ClaimDecision::Mismatch,
        "what was begun as A is not finished as B"
    );
}

proptest! {
    /// CRD-2: whatever comes in which order, at most one token may write at any time, and a result once written is never
    /// replaced while it is kept.
    #[test]
    fn crd_2_one_writer_at_a_time(steps in proptest::collection::vec((0_u8..5, 0_u64..4, 0_i64..60), 1..80)) {
        let (mut entry, mut now, mut wrote) = (Entry::Absent, 0_i64, None::<(u64, i64)>);
        for (what, token, wait) in steps {
            now += wait;
            match what {
                0 | 1 => match claim(entry, &wants(A, token), now) {
                    ClaimDecision::Run(next) => {
                        prop_assert!(wrote.is_none_or(|(_, until)| until <= now), "run again while a result is kept");
                        entry = next;
                        wrote = None;
                    }
                    ClaimDecision::Replay => prop_assert!(wrote.is_some()),
                    ClaimDecision::InFlight { until } => prop_assert!(until > now),
                    ClaimDecision::Mismatch => prop_assert!(false, "all send the same"),
                },
                2 => if let Some(next) = renew(entry, token, 100, now) { entry = next },
                _ => if may_write(entry, token) {
                    prop_assert!(wrote.is_none());
                    entry = Entry::Done { fingerprint: A, until: now + 200 };
                    wrote = Some((token, now + 200));
                },
            }
            let writers = (0..4).filter(|token| may_write(entry, *token)).count();
            prop_assert!(writers <= 1);
        }
    }
}
