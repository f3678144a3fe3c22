//! The shares of trouble.

use super::machine::{Trouble, trouble};
use super::*;
use crate::config::Problems;
use crate::fault::Fault;
use crate::millis;

/// ENG-15: each kind of trouble gets its share, and a seed tells the same story again.
#[test]
fn eng_15_trouble_comes_in_the_shares_that_were_asked_for() {
    let chaos = Chaos::new().fault_rate(10).hang_rate(5).slow_rate(20.5).slow_by(millis(300));
    let draw = |seed| {
        let injector = Injector::new(&chaos, seed);
        (0..100_000).map(|_| injector.draw()).collect::<Vec<_>>()
    };
    let drawn = draw(1);
    assert_eq!(drawn, draw(1));
    let count = |trouble: Trouble| drawn.iter().filter(|drawn| **drawn == trouble).count();
    assert!((9_500..10_500).contains(&count(Trouble::Fails(Fault::io()))));
    assert!((4_700..5_300).contains(&count(Trouble::Hangs)));
    assert!((20_000..21_000).contains(&count(Trouble::IsSlow(millis(300)))));
}

/// ENG-15: the ends of the scale.
#[test]
fn eng_15_all_and_nothing_are_exact() {
    let (all, nothing) = (Chaos::new().fault_rate(100).rules(), Chaos::new().rules());
    for random in [0, 1, u64::MAX / 2, u64::MAX] {
        assert_eq!(trouble(random, &all), Trouble::Fails(Fault::io()));
        assert_eq!(trouble(random, &nothing), Trouble::None);
    }
}

/// ENG-15: it can be switched off and on again.
#[test]
fn eng_15_it_can_be_switched() {
    let injector = Injector::new(&Chaos::new().hang_rate(100), 1);
    assert_eq!((injector.is_on(), injector.draw()), (true, Trouble::Hangs));
    injector.switch(false);
    assert_eq!((injector.is_on(), injector.draw()), (false, Trouble::None));
    injector.switch(true);
    assert_eq!(injector.draw(), Trouble::Hangs);
}

/// ENG-11: more trouble than there are attempts is refused.
#[test]
fn eng_11_chaos_that_cannot_be_is_refused() {
    let wrong = |chaos: Chaos| {
        let mut problems = Problems::default();
        chaos.check(&mut problems);
        problems.into_result("it", ()).expect_err("it can't be").to_string()
    };
    assert!(wrong(Chaos::new().fault_rate(60).hang_rate(60)).contains("more than all attempts together"));
    assert!(wrong(Chaos::new().fault_rate(-1)).contains("between 0 % and 100 %"));
}
