//! Rules, tracks and incidents as scripts.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::domain::circuit::CircuitState;

const SECOND: Duration = Duration::from_secs(1);

fn slug(name: &str) -> Slug {
    Slug::new(name).unwrap()
}

/// `x` is a second in which it is bad, `.` one in which it is fine. Each is answered by what it led to: `O`pened, `R`esolved
/// or nothing.
fn play(script: &str, holds: u64, clears: u64) -> String {
    let mut track = ConditionTimer::default();
    let turn = |(second, sign): (u64, char)| {
        let now = Duration::from_secs(second);
        match track.step(sign == 'x', now, SECOND * holds as u32, SECOND * clears as u32) {
            Some(NoticeKind::Opened) => 'O',
            Some(NoticeKind::Resolved) => 'R',
            None => '-',
        }
    };
    (0..).zip(script.chars()).map(turn).collect()
}

/// HUB-12: what is bad for long enough is one incident, and what flaps is not fifty.
#[test]
fn hub_12_what_flaps_is_one_incident() {
    for (script, holds, clears, expected) in [
        ("xxxxx", 3, 3, "---O-"),
        ("xx.xx.xxxx", 3, 3, "---------O"),
        ("xxxx...x.x..x....", 3, 3, "---O------------R"),
        ("x.x.x.", 0, 0, "OROROR"),
        ("x.x.x.x...", 0, 2, "O--------R"),
        ("......", 0, 0, "------"),
    ] {
        assert_eq!(play(script, holds, clears), expected, "{script}");
    }
}

proptest! {
    /// HUB-12: openings and resolves take turns, and between an opening and a resolve it was fine for as long as was said, and
    /// between a resolve and an opening bad for as long.
    #[test]
    fn hub_12_a_turn_needs_its_time(script in "[x.]{0,80}", holds in 0_u64..6, clears in 0_u64..6) {
        let played = play(&script, holds, clears);
        let (mut open, signs) = (false, script.as_bytes());
        for (at, turn) in played.bytes().enumerate() {
            let lasted = |sign: u8, time: u64| {
                let time = usize::try_from(time).unwrap();
                at >= time && signs[at - time..=at].iter().all(|found| *found == sign)
            };
            match turn {
                b'O' => {
                    prop_assert!(!open && lasted(b'x', holds));
                    open = true;
                }
                b'R' => {
                    prop_assert!(open && lasted(b'.', clears));
                    open = false;
                }
                _ => {
                    // Nothing that was long enough is passed over.
                    let passed_over = if open { lasted(b'.', clears) } else { lasted(b'x', holds) };
                    prop_assert!(!passed_over);
                }
            }
        }
    }
}

fn scene(circuit: CircuitState, oldest: u64, paused: bool) -> SystemSnapshot {
    let seen = ServiceCondition {
        name: slug("billing"),
        paused,
        circuit: Some((circuit, Some("they asked us to".into()))),
        oldest_due: Some(Duration::from_secs(oldest)),
    };
    SystemSnapshot {
        services: vec![seen],
        dead_letters: Some(vec![(SECOND * 300, vec![(slug("billing"), 11)])]),
        warnings: vec![(SECOND * 3_600, 101)],
        errors: vec![(SECOND * 300, 1)],
        last_error: Some("[Deliver][Send] Failed!".into()),
        store: StoreCondition { free_bytes: Some(1 << 40), ..StoreCondition::default() },
    }
}

fn found(kind: ConditionKind, scene: &SystemSnapshot) -> Option<(bool, String)> {
    let rule = AlertRule::usual(slug(kind.built_in()), kind);
    let mut found = rule.look(scene)?;
    assert!(found.len() <= 1);
    found.pop().map(|reading| (reading.bad, reading.summary))
}

/// HUB-12: each rule that comes with the hub finds what it is for, just beyond its threshold and not at it.
#[test]
fn hub_12_each_rule_finds_what_it_is_for() {
    let well = scene(CircuitState::Closed, 600, false);
    let bad = |kind, scene: &SystemSnapshot| found(kind, scene).unwrap().0;
    assert!(
        !bad(ConditionKind::CircuitOpen, &well)
            && !bad(ConditionKind::OldestDue, &well)
            && !bad(ConditionKind::DataLossRisk, &well)
    );
    assert!(
        bad(ConditionKind::DeadLetters, &well)
            && bad(ConditionKind::Warnings, &well)
            && bad(ConditionKind::Errors, &well)
    );
    let (_, said) = found(ConditionKind::Errors, &well).unwrap();
    assert_eq!(said, "1 error in the log within 5 min, the last one: [Deliver][Send] Failed!");
    let fewer = SystemSnapshot {
        dead_letters: Some(vec![(SECOND * 300, vec![(slug("billing"), 10)])]),
        warnings: vec![(SECOND * 3_600, 100)],
        errors: vec![(SECOND * 300, 0)],
        ..well.clone()
    };
    assert!(
        !bad(ConditionKind::DeadLetters, &fewer)
            && !bad(ConditionKind::Warnings, &fewer)
            && !bad(ConditionKind::Errors, &fewer)
    );
    assert!(bad(ConditionKind::OldestDue, &scene(CircuitState::Closed, 601, false)));
    assert!(
        !bad(ConditionKind::OldestDue, &scene(CircuitState::Closed, 601, true)),
        "a paused service is expected to wait"
    );
    for state in [CircuitState::Open, CircuitState::HalfOpen, CircuitState::ForcedOpen] {
        assert!(bad(ConditionKind::CircuitOpen, &scene(state, 0, false)), "{state:?}");
    }
    let (_, forced) = found(ConditionKind::CircuitOpen, &scene(CircuitState::ForcedOpen, 0, false)).unwrap();
    assert!(forced.contains("forced open") && forced.contains("they asked us to"), "{forced}");
    for store in [
        StoreCondition { full: true, ..StoreCondition::default() },
        StoreCondition { refused: 1, ..StoreCondition::default() },
        StoreCondition { failed: 1, ..StoreCondition::default() },
        StoreCondition { free_bytes: Some(255 << 20), ..StoreCondition::default() },
    ] {
        assert!(bad(ConditionKind::DataLossRisk, &SystemSnapshot { store, ..well.clone() }));
    }
}

/// HUB-12: what can't be known is neither bad nor fine, and a rule looks at its own services only.
#[test]
fn hub_12_what_is_not_known_changes_nothing() {
    let deaf = SystemSnapshot { dead_letters: None, ..scene(CircuitState::Closed, 0, false) };
    assert_eq!(found(ConditionKind::DeadLetters, &deaf), None);
    let mut rule = AlertRule::usual(slug("circuit-open"), ConditionKind::CircuitOpen);
    rule.services = Some(vec![slug("mail")]);
    assert_eq!(rule.look(&scene(CircuitState::Open, 0, false)), Some(Vec::new()));
    rule.services = Some(vec![slug("billing")]);
    assert_eq!(rule.look(&scene(CircuitState::Open, 0, false)).map(|found| found.len()), Some(1));
}

/// HUB-12: a count goes out of its window again.
#[test]
fn hub_12_a_count_goes_out_of_its_window() {
    let mut progress = GrowthWindow::default();
    let window = SECOND * 3_600;
    for second in 0..7_200 {
        // A line each second of the first minute.
        progress.note(SECOND * second, u64::from(second.min(60)));
        let found = progress.within(SECOND * second, window, u64::from(second.min(60)));
        match second {
            0..=60 => assert_eq!(found, u64::from(second)),
            61..3_600 => assert_eq!(found, 60),
            3_671.. => assert_eq!(found, 0, "{second}"),
            _ => {}
        }
    }
}

fn incident() -> Incident {
    Incident {
        id: "inc_1".into(),
        rule: slug("circuit-open"),
        kind: ConditionKind::CircuitOpen,
        severity: Severity::Critical,
        service: Some(slug("billing")),
        opened: Millis(0),
        updated: Millis(0),
        resolved: None,
        value: 1.0,
        summary: "it is open".into(),
        acknowledged: None,
        muted: None,
        notified: false,
        notices: Vec::new(),
    }
}

/// HUB-12: who was told is told of the end, once and after the beginning; who was not is not.
#[test]
fn hub_12_who_was_told_is_told_of_the_end() {
    let (mail, hook, late) = (slug("mail"), slug("hook"), slug("late"));
    let mut incident = incident();
    incident.tell(&[mail.clone(), hook.clone()], Millis(0));
    incident.tell(std::slice::from_ref(&late), Millis(5));
    assert_eq!(incident.due(&late, false, Millis(10)), None, "it came later");
    assert_eq!(incident.due(&mail, false, Millis(0)), Some(NoticeKind::Opened));
    assert_eq!(incident.due(&mail, true, Millis(0)), None, "nobody is told");
    incident.settle(&mail, NoticeKind::Opened, Ok(()), Millis(1));
    assert_eq!(incident.due(&mail, false, Millis(10)), None);
    incident.resolve("it is closed", Millis(20));
    incident.resolve("again", Millis(30));
    assert_eq!(incident.due(&mail, true, Millis(20)), Some(NoticeKind::Resolved), "also while it is quiet");
    assert_eq!(incident.due(&hook, false, Millis(20)), None, "never told");
    assert!(incident.is_live());
    incident.settle(&mail, NoticeKind::Resolved, Ok(()), Millis(21));
    assert!(!incident.is_live() && incident.notices.len() == 3);
}

/// HUB-12: what two have stored of an incident is merged, whoever is first: nothing that goes only forward goes back. What one stores
/// alone stays as it is.
#[test]
fn hub_12_an_incident_of_two_goes_only_forward() {
    let hook = slug("hook");
    let mut start = incident();
    start.tell(std::slice::from_ref(&hook), Millis(0));
    let seen = |at| Some(Acknowledgement { who: "ann".into(), at: Millis(at), reason: None });
    let acknowledged = Incident { acknowledged: seen(5), ..start.clone() };
    let mut ended = Incident { value: 2.0, ..start.clone() };
    ended.settle(&hook, NoticeKind::Opened, Ok(()), Millis(1));
    ended.resolve("it is closed", Millis(7));
    for (one, other) in [(&acknowledged, &ended), (&ended, &acknowledged)] {
        let both = one.clone().merged(other.clone());
        assert_eq!(
            (both.value, &both.acknowledged),
            (one.value, &seen(5)),
            "the reading is that of the last"
        );
        assert_eq!((both.resolved, both.notices), (ended.resolved.clone(), ended.notices.clone()));
    }
    let again = Incident { acknowledged: seen(6), ..acknowledged.clone() };
    assert_eq!(acknowledged.clone().merged(again.clone()).acknowledged, seen(6), "the last one counts");
    let mut failed = start.clone();
    failed.settle(&hook, NoticeKind::Opened, Err("down".into()), Millis(2));
    assert_eq!(start.clone().merged(failed.clone()).notices, failed.notices, "an attempt is not forgotten");
    // One that goes on by itself is not changed.
    for (after, before) in
        [(&acknowledged, &start), (&ended, &start), (&failed, &start), (&again, &acknowledged)]
    {
        assert_eq!(&after.clone().merged(before.clone()), after);
    }
}

/// HUB-12: a channel that fails is tried again, ever more rarely, for a day; its end comes after its beginning.
#[test]
fn hub_12_a_channel_that_fails_is_tried_ever_more_rarely() {
    let hook = slug("hook");
    let (mut incident, mut now, mut tries) = (incident(), Millis(0), 0_u32);
    incident.tell(std::slice::from_ref(&hook), now);
    while incident.notices[0].waits() {
        let NoticeState::Waiting { due } = incident.notices[0].state else { unreachable!("it waits") };
        assert!(due.since(now) <= BACKOFF_MOST, "{tries}");
        now = due;
        tries += 1;
        if tries == 3 {
            incident.resolve("over", now);
        }
        assert_eq!(incident.due(&hook, false, now), Some(NoticeKind::Opened), "first things first");
        incident.settle(&hook, NoticeKind::Opened, Err("nobody there".into()), now);
    }
    assert!((250..400).contains(&tries), "{tries} tries in a day");
    assert!(!incident.is_live(), "nobody is told of the end of what nobody was told of");
    assert!(incident.notices[0].error.as_ref().unwrap().contains("nobody there"));
}

const BACKOFF_MOST: Duration = Duration::from_secs(300);
