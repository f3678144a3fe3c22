use std::time::Duration;

use super::*;
use crate::Millis;

pub(super) fn record(id: &str) -> Record {
    Record {
        id: id.into(),
        origin: Origin {
            kind: "amqp".into(),
            place: "orders".into(),
            id: format!("m-{id}"),
            at: Some(Millis(5)),
        },
        payload: b"{\"order\": 7}".to_vec(),
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("Seawall-Replayed".into(), "no".into()),
        ],
        fault: LetterFault { reason: "attempts".into(), message: Some("503 from billing".into()) },
        at: Millis(1_000),
        attempts: vec![Attempt { at: Millis(10), took: Duration::from_millis(3), ..Attempt::default() }],
        trace: None,
    }
}

/// CRD-7: the receiver of a replay gets the original id, the original time and the mark, each once.
#[test]
fn crd_7_a_replay_bears_its_marks_once() {
    let mut letter = DeadLetter::new(record("a"));
    let ReplayStart::Started { message, .. } = begin_replay(&mut letter, &ReplayRequest::new("k"), Millis(0))
    else {
        panic!("the letter waits")
    };
    let of = |name: &str| -> Vec<&str> {
        let same = message.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        same.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of(REPLAYED_HEADER), ["true"]);
    assert_eq!(of(ORIGINAL_ID_HEADER), ["m-a"]);
    assert_eq!(of(ORIGINAL_TIME_HEADER), ["1970-01-01T00:00:00.005Z"]);
    assert_eq!(of(GENERATION_HEADER), ["1"]);
    assert_eq!(of("content-type"), ["application/json"]);
}

/// CRD-7: two attempts that look the same are two, and a record that is put away twice adds nothing.
#[test]
fn crd_7_equal_attempts_are_counted() {
    let mut letter = DeadLetter::new(record("a"));
    assert_eq!(merge(&mut letter, &record("a"), Millis(0)), PutOutcome::Known);
    let mut twice = record("a");
    twice.attempts.push(twice.attempts[0].clone());
    assert_eq!(merge(&mut letter, &twice, Millis(0)), PutOutcome::Updated);
    assert_eq!(merge(&mut letter, &twice, Millis(0)), PutOutcome::Known);
    assert_eq!(letter.record.attempts.len(), 2);
}

#[test]
fn page_tokens_are_read_back() {
    let cursor = Cursor { at: Millis(-7), id: "a.b.c".into() };
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    for wrong in ["", "7", "x.y", ".", "9223372036854775808.a"] {
        assert_eq!(wrong.parse::<Cursor>(), Err(BadCursor), "{wrong:?}");
    }
}

proptest::proptest! {
    /// CRD-7: whatever happens in which order, attempts never get fewer, a letter that died again is never hidden as
    /// replayed, and one key is one replay.
    #[test]
    fn crd_7_no_order_of_events_loses_a_letter(steps in proptest::collection::vec((0_u8..10, 0_u8..3, 0_i64..50), 1..60)) {
        let mut letter = DeadLetter::new(record("a"));
        let (mut now, mut deaths, mut open) = (Millis(2_000), 0_i64, Vec::new());
        for (what, which, wait) in steps {
            now.0 += wait;
            let (before, replays) = (letter.record.attempts.len(), letter.replays.len());
            let mut request = ReplayRequest::new(format!("k{which}")).again();
            request.lease = Duration::from_millis(40);
            match what {
                0 => { apply(&mut letter, LetterChange::Park, now); }
                1 => { apply(&mut letter, LetterChange::Unpark, now); }
                2 => { apply(&mut letter, LetterChange::Delete, now); }
                3 => { apply(&mut letter, LetterChange::Restore, now); }
                4 => {
                    deaths += 1;
                    let mut died = record("a");
                    died.at = Millis(1_000 + deaths);
                    died.attempts.push(Attempt { at: Millis(100 + deaths), ..Attempt::default() });
                    proptest::prop_assert_eq!(merge(&mut letter, &died, now), PutOutcome::Updated);
                    proptest::prop_assert!(matches!(letter.status, Status::Waiting | Status::Parked));
                    proptest::prop_assert!(letter.deleted_at.is_none() && letter.claim.is_none());
                    open.clear();
                }
                5 | 6 => if let ReplayStart::Started { claim, .. } = begin_replay(&mut letter, &request, now) {
                    open.push(claim);
                },
                9 => {
                    let runs = letter.claim.as_ref().is_some_and(|claim| claim.until > now);
                    let copied = copy(&mut letter, &Edit::default(), &format!("copy {}", now.0), None, now);
                    let copied = matches!(copied, CopyOutcome::Copied(_));
                    proptest::prop_assert!(!(copied && (runs || letter.claim.is_some())), "both are sent");
                }
                _ => if let Some(claim) = open.pop() {
                    let failure = FailedReplay { took: Duration::ZERO, error: "x".into() };
                    let newest = letter.claim.as_ref().is_some_and(|held| held.number == claim);
                    let recorded = finish_replay(&mut letter, claim, (what == 7).then_some(&failure), now);
                    proptest::prop_assert_eq!(recorded, newest);
                },
            }
            proptest::prop_assert!(letter.superseded_by.is_none() || letter.status != Status::Replayed, "the copy is hidden");
            proptest::prop_assert!(letter.record.attempts.len() >= before && letter.replays.len() >= replays);
            let mut keys: Vec<&str> = letter.replays.iter().map(|replay| replay.key.as_str()).collect();
            keys.sort_unstable();
            let all = keys.len();
            keys.dedup();
            proptest::prop_assert_eq!(keys.len(), all, "one key is one replay");
        }
    }
}
