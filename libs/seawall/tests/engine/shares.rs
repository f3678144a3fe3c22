//! A share in code means what it means in a file.

use seawall::{Breaker, Budget, Chaos, Guard, GuardBuilder, Hedge, Percent, Retry, millis};

fn guard() -> GuardBuilder {
    Guard::builder("peer")
}

fn with_budget(share: impl Into<Percent>) -> GuardBuilder {
    guard().retry(Retry::max_attempts(2).budget(Budget::share_of_calls(share)))
}

/// ENG-12: a half, or half a percent? What a file refuses is refused in code, wherever a share is taken, with what to write.
#[test]
fn eng_12_a_share_between_0_and_1_is_refused_in_code_as_in_a_file() {
    let rate = || Breaker::failure_rate(50);
    let builders = [
        ("breaker.failure_rate", guard().breaker(Breaker::failure_rate(0.5))),
        ("breaker.slow_rate", guard().breaker(rate().slow_after(millis(9)).slow_rate(0.5))),
        ("breaker.cooldown_jitter", guard().breaker(rate().cooldown_jitter(0.5))),
        ("retry.budget.share_of_calls", with_budget(0.5)),
        ("hedge.percentile", guard().hedge(Hedge::percentile(0.5))),
        ("chaos", guard().chaos(Chaos::new().fault_rate(0.5))),
        ("chaos", guard().chaos(Chaos::new().hang_rate(0.5))),
        ("chaos", guard().chaos(Chaos::new().slow_rate(0.5).slow_by(millis(9)))),
    ];
    for (path, builder) in builders {
        let error = builder.build().expect_err(path);
        assert_eq!(error.problems().len(), 1, "{error}");
        assert_eq!(error.problems()[0].path(), path);
        let text = "0.5 is less than one percent: write 50, or `Percent::exact(0.5)` if 0.5 % is meant";
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// ENG-12: whole percents, and fractions that are meant, are taken.
#[test]
fn eng_12_a_share_that_is_meant_is_taken() {
    for share in [Percent::exact(0.5), 1.into(), 1.0.into(), 2.5.into(), 100.into(), 100.0.into()] {
        assert!(guard().breaker(Breaker::failure_rate(share)).build().is_ok(), "{share}");
        assert!(with_budget(share).build().is_ok(), "{share}");
    }
    for share in [0.07, 0.29, 0.57] {
        let error = with_budget(share).build().unwrap_err().to_string();
        assert!(error.contains(&format!("write {}, or", (share * 100.0_f64).round())), "{error}");
    }
}
