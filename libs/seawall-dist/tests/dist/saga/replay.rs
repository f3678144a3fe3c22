use seawall_dist::saga::{JournalEntry, NextAction, Saga};

use super::{Record, fine, step, transfer};

fn journal(text: &str) -> Vec<JournalEntry> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

const CRASHED: &str = include_str!("../journals/transfer_v1_crashed_in_credit.txt");
const COMPENSATED: &str = include_str!("../journals/transfer_v1_compensated.txt");

/// CRD-5, trap "new code, old journal": recorded journals of version 1 mean today what they meant when they were recorded.
#[test]
fn crd_5_recorded_journals_are_replayed() {
    let saga = transfer(&Record::default()).build().unwrap();
    let next = saga.replay(&journal(CRASHED)).unwrap();
    assert_eq!(
        next,
        NextAction::Execute { step: 1, attempt: 2 },
        "a crashed saga goes on at the step where it stood"
    );
    let compensated = journal(COMPENSATED);
    assert_eq!(saga.replay(&compensated).unwrap(), NextAction::Nothing);
    let expected = [
        NextAction::Execute { step: 0, attempt: 1 },
        NextAction::Execute { step: 0, attempt: 2 },
        NextAction::Execute { step: 1, attempt: 1 },
        NextAction::Execute { step: 1, attempt: 2 },
        NextAction::Compensate { step: 1, attempt: 1 },
        NextAction::Compensate { step: 1, attempt: 2 },
        NextAction::Compensate { step: 0, attempt: 1 },
        NextAction::Compensate { step: 0, attempt: 2 },
        NextAction::Compensate { step: 0, attempt: 2 },
        NextAction::Compensate { step: 0, attempt: 3 },
        NextAction::FinishCompensation,
    ];
    for (length, expected) in expected.into_iter().enumerate() {
        assert_eq!(saga.replay(&compensated[..length]).unwrap(), expected, "after {length} entries");
    }
}

/// CRD-5: a definition that was changed under its version is found by the replay of a recorded journal.
#[test]
fn crd_5_a_changed_definition_does_not_fit_an_old_journal() {
    let record = Record::default();
    let swapped = Saga::builder("transfer", 1)
        .step(step("credit", &record, fine, fine))
        .step(step("debit", &record, fine, fine));
    let error = swapped.build().unwrap().replay(&journal(CRASHED)).unwrap_err();
    assert!(error.to_string().contains("before the steps ahead of it were done"), "{error}");
    let renamed = Saga::builder("transfer", 1).step(step("take", &record, fine, fine)).build().unwrap();
    assert!(renamed.replay(&journal(CRASHED)).unwrap_err().to_string().contains("no step `debit`"));
    let saga = transfer(&record).build().unwrap();
    for (line, why) in [
        ("step_done debit 1 - -", "no intent before it"),
        ("compensation_done debit 1 - -", "no intent before it"),
        ("compensation_intent debit 1 - -", "went forward"),
        ("step_done - 1 - -", "names no step"),
    ] {
        let error = saga.replay(&journal(line)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}
