//! Which trouble an attempt gets: a function of a random number.

use std::time::Duration;

use crate::fault::Fault;

/// Shares in millionths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rules {
    pub(crate) faults: u64,
    pub(crate) hangs: u64,
    pub(crate) slow: u64,
    pub(crate) fault: Fault,
    pub(crate) latency: Duration,
}

/// What happens to an attempt.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Trouble {
    None,
    Fails(Fault),
    Hangs,
    IsSlow(Duration),
}

pub(crate) fn trouble(random: u64, rules: &Rules) -> Trouble {
    // Evenly between 0 and a million: the upper half of a product, so that no remainder favours anybody.
    let drawn = ((u128::from(random) * 1_000_000) >> 64) as u64;
    if drawn < rules.faults {
        Trouble::Fails(rules.fault)
    } else if drawn < rules.faults + rules.hangs {
        Trouble::Hangs
    } else if drawn < rules.faults + rules.hangs + rules.slow {
        Trouble::IsSlow(rules.latency)
    } else {
        Trouble::None
    }
}
