//! A guard in words, and the words that a wrong one gets.

use std::time::Duration;

use seawall::breaker::Scope;
use seawall::{Backoff, Breaker, Budget, Guard, Retry, millis, secs};

/// ENG-11: `explain` prints what is in a guard, in order, with the values in force.
#[test]
fn eng_11_explain_prints_the_guard_from_outside_in() {
    let guard = Guard::builder("payments")
        .attempt_timeout(secs(3))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(100))))
        .breaker(
            Breaker::failure_rate(50)
                .over_time(secs(10))
                .slow_after(secs(2))
                .slow_rate(80)
                .cooldown(secs(30)),
        )
        .build()
        .unwrap();
    assert_eq!(
        guard.explain(),
        "\
guard `payments`, from outside in
  call timeout    9.4s (all attempts and waits)
  retry           3 attempts, exponential back-off from 100ms times 2, at most 60s, full jitter
    budget        10 % of the calls of the last 10s; while those are fewer than 100 calls also 3 a second, up to 30 at once, which the share repays later
  breaker         opens at 50 % failures or 80 % calls of 2s or more in the last 10s (at least 20), for 30s; half-open \
with 1 probe at once, closes after 1 success; counts attempts
  attempt timeout 3s
  operation       retried only as far as the call declares it safe
"
    );
}

/// ENG-11: a bare guard holds a call timeout and budgeted retries, and nothing else.
#[test]
fn eng_11_a_bare_guard_holds_what_it_says() {
    let bare = Guard::builder("bare").build().unwrap();
    assert_eq!(
        bare.explain(),
        "\
guard `bare`, from outside in
  call timeout    10s (the default)
  retry           3 attempts, exponential back-off from 1s times 2, at most 60s, full jitter
    budget        10 % of the calls of the last 10s; while those are fewer than 100 calls also 3 a second, up to 30 at once, which the share repays later
  operation       retried only as far as the call declares it safe
"
    );
    let nothing = Guard::builder("nothing").no_retry().no_call_timeout().build().unwrap();
    assert_eq!(nothing.explain().lines().count(), 2);
    assert!(nothing.breaker().is_none() && nothing.budget().is_none());
}

/// ENG-11: where the breaker counts calls, it stands around the retries.
#[test]
fn eng_11_explain_shows_where_the_breaker_stands() {
    let breaker = Breaker::default().scope(Scope::Call);
    let guard = Guard::builder("hub").breaker(breaker).build().unwrap();
    let text = guard.explain();
    let position = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word:?} is missing in {text}"));
    assert!(position("breaker") < position("retry  ") && text.contains("counts calls"));
}

/// ENG-11: everything that is wrong is said at once, with where it is and what to do.
#[test]
fn eng_11_a_guard_that_cannot_work_is_refused_with_all_its_mistakes() {
    let error = Guard::builder("  ")
        .call_timeout(secs(2))
        .attempt_timeout(secs(3))
        .retry(
            Retry::max_attempts(0)
                .backoff(Backoff::exponential(secs(90)).no_jitter())
                .budget(Budget::share_of_calls(0).floor_per_second(0.0)),
        )
        .breaker(Breaker::consecutive_failures(0))
        .build()
        .unwrap_err();
    let paths: Vec<_> = error.problems().iter().map(seawall::Problem::path).collect();
    assert_eq!(
        paths,
        [
            "name",
            "attempt_timeout",
            "retry.max_attempts",
            "retry.backoff.base",
            "retry.budget",
            "breaker.consecutive_failures"
        ]
    );
    assert!(error.problems().iter().all(|problem| problem.reason().len() > 30), "each says what to do");
    assert!(
        error.to_string().starts_with("guard `  ` can't work\n  name: a guard without a name"),
        "{error}"
    );
}

/// ENG-11: a first wait that does not fit into the call means that nothing is ever retried.
#[test]
fn eng_11_a_retry_that_never_fits_is_refused() {
    let build = |backoff: Backoff| {
        Guard::builder("tight").call_timeout(secs(1)).retry(Retry::max_attempts(3).backoff(backoff)).build()
    };
    let error = build(Backoff::constant(secs(2)).no_jitter()).unwrap_err().to_string();
    assert!(
        error.contains(
            "retry.backoff: the first wait of at least 2s does not fit into the call timeout of 1s"
        ),
        "{error}"
    );
    assert!(build(Backoff::constant(secs(2))).is_ok(), "with full jitter it may fit");
    assert!(build(Backoff::constant(Duration::ZERO)).is_ok());
}
