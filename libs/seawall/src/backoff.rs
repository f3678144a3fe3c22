//! How long to wait before the next attempt.
#![doc = ""]
#![doc = include_str!("../docs/backoff.md")]

use std::fmt;
use std::time::Duration;

use crate::chance::fraction;
#[cfg(not(seawall_loom))]
use crate::config::Problems;

/// The wait before the first retry.
pub const BASE: Duration = Duration::from_secs(1);
/// No wait is longer, so that a long outage is noticed to be over within a minute.
pub const CAP: Duration = Duration::from_secs(60);
/// Each wait is twice the one before.
pub const MULTIPLIER: f64 = 2.0;
/// A peer that asks for fewer calls is given this many times the usual base.
pub const THROTTLED_TIMES: u32 = 5;

/// A plan of waits: a shape, a base, a cap, a jitter.
///
/// ```
/// use seawall::{Backoff, millis, secs};
/// let backoff = Backoff::exponential(millis(100)).cap(secs(5)).no_jitter();
/// assert_eq!(backoff.bound(0), millis(100));
/// assert_eq!(backoff.bound(3), millis(800));
/// assert_eq!(backoff.bound(u32::MAX), secs(5));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    shape: Shape,
    base: Duration,
    throttled_base: Option<Duration>,
    cap: Duration,
    jitter: Jitter,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    Constant,
    Linear,
    Exponential { multiplier: f64 },
}

/// How much of a wait is left to chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Jitter {
    /// Nothing. Callers that failed together come back together.
    None,
    /// All of it: evenly between zero and the bound.
    Full,
    /// Half of it: evenly between half of the bound and the bound.
    Equal,
    /// Evenly between the base and three times the wait before, or three times the base for the first wait, up to the cap.
    Decorrelated,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::exponential(BASE)
    }
}

impl Backoff {
    /// The same wait each time.
    #[must_use]
    pub const fn constant(base: Duration) -> Self {
        Backoff::new(Shape::Constant, base)
    }

    /// `base`, twice `base`, three times `base`, …
    #[must_use]
    pub const fn linear(base: Duration) -> Self {
        Backoff::new(Shape::Linear, base)
    }

    /// `base`, then each wait [`multiplier`](Backoff::multiplier) (2) times the one before.
    #[must_use]
    pub const fn exponential(base: Duration) -> Self {
        Backoff::new(Shape::Exponential { multiplier: MULTIPLIER }, base)
    }

    const fn new(shape: Shape, base: Duration) -> Self {
        Backoff { shape, base, throttled_base: None, cap: CAP, jitter: Jitter::Full }
    }

    /// What each exponential wait is multiplied with. Makes the shape exponential.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: f64) -> Self {
        self.shape = Shape::Exponential { multiplier };
        self
    }

    /// The longest wait.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// The base for a peer that asked for fewer calls without saying when; five times the usual base by default.
    #[must_use]
    pub const fn throttled_base(mut self, base: Duration) -> Self {
        self.throttled_base = Some(base);
        self
    }

    /// How much is left to chance.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Evenly between zero and the bound: the default.
    #[must_use]
    pub const fn full_jitter(self) -> Self {
        self.jitter(Jitter::Full)
    }

    /// Exactly the bound.
    #[must_use]
    pub const fn no_jitter(self) -> Self {
        self.jitter(Jitter::None)
    }

    /// The longest wait before retry number `retry`, counted from 0. Never overflows.
    #[must_use]
    pub fn bound(&self, retry: u32) -> Duration {
        self.bound_from(self.base, retry)
    }

    fn bound_from(&self, base: Duration, retry: u32) -> Duration {
        let cap = self.cap;
        let times = match self.shape {
            Shape::Constant => 1.0,
            Shape::Linear => f64::from(retry) + 1.0,
            // Beyond 2³¹ the power is infinite, and the cap decides.
            Shape::Exponential { multiplier } => multiplier.powi(i32::try_from(retry).unwrap_or(i32::MAX)),
        };
        if self.jitter == Jitter::Decorrelated {
            return cap;
        }
        scale(base, times).min(cap)
    }

    /// The wait before retry number `retry`, counted from 0, after a wait of `previous` (zero for the first).
    ///
    /// `random` is any evenly distributed number; the same one gives the same wait.
    #[must_use]
    pub fn wait(&self, retry: u32, previous: Duration, throttled: bool, random: u64) -> Duration {
        let base = if throttled { self.base_when_throttled() } else { self.base };
        let bound = self.bound_from(base, retry);
        let chance = fraction(random);
        match self.jitter {
            Jitter::None => bound,
            Jitter::Full => scale(bound, chance),
            Jitter::Equal => bound / 2 + scale(bound / 2, chance),
            Jitter::Decorrelated => {
                let (base, top) = (base.min(self.cap), previous.max(base).saturating_mul(3).min(self.cap));
                base + scale(top - base, chance)
            }
        }
    }

    #[cfg(not(seawall_loom))]
    /// The shortest possible wait before the first retry.
    pub(crate) fn shortest_first(&self) -> Duration {
        match self.jitter {
            Jitter::Full => Duration::ZERO,
            Jitter::Equal => self.bound(0) / 2,
            Jitter::None => self.bound(0),
            Jitter::Decorrelated => self.base.min(self.cap),
        }
    }

    #[cfg(not(seawall_loom))]
    /// The longest waits of `retries` retries together.
    pub(crate) fn longest_total(&self, retries: u32) -> Duration {
        // A guard has few attempts; a thousand capped waits are hours, which is as good as any number above.
        (0..retries.min(1_000)).fold(Duration::ZERO, |sum, retry| sum.saturating_add(self.bound(retry)))
    }

    fn base_when_throttled(&self) -> Duration {
        self.throttled_base.unwrap_or_else(|| self.base.saturating_mul(THROTTLED_TIMES))
    }

    #[cfg(not(seawall_loom))]
    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.refuse_if(self.cap.is_zero(), "retry.backoff.cap", || {
            "a cap of zero means no wait at all; write a constant back-off of zero if that is meant".into()
        });
        problems.refuse_if(self.base > self.cap, "retry.backoff.base", || {
            format!(
                "the base {:?} is above the cap {:?}; raise the cap or lower the base",
                self.base, self.cap
            )
        });
        if let Shape::Exponential { multiplier } = self.shape {
            problems.refuse_if(!(1.0..=1_000.0).contains(&multiplier), "retry.backoff.multiplier", || {
                format!("{multiplier} is not between 1 and 1000; 2 doubles each wait")
            });
        }
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Backoff { base, cap, .. } = self;
        match self.shape {
            Shape::Constant => write!(f, "constant back-off of {base:?}")?,
            Shape::Linear => write!(f, "linear back-off by {base:?}, at most {cap:?}")?,
            Shape::Exponential { multiplier } => {
                write!(f, "exponential back-off from {base:?} times {multiplier}, at most {cap:?}")?;
            }
        }
        f.write_str(match self.jitter {
            Jitter::None => ", no jitter",
            Jitter::Full => ", full jitter",
            Jitter::Equal => ", equal jitter",
            Jitter::Decorrelated => ", decorrelated jitter",
        })
    }
}

/// `duration` times a factor that may be infinite; saturates.
fn scale(duration: Duration, factor: f64) -> Duration {
    let nanos = duration.as_nanos() as f64 * factor;
    // The cast saturates, also for infinity; zero times infinity is not a number and becomes zero.
    Duration::from_nanos(nanos as u64)
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use crate::{millis, secs};

    /// ENG-2: the shapes.
    #[test]
    fn eng_2_shapes_grow_as_they_say_and_stop_at_the_cap() {
        let check = |backoff: Backoff, expected: [u64; 5]| {
            let bounds =
                [0, 1, 2, 5, u32::MAX].map(|retry| backoff.no_jitter().bound(retry).as_millis() as u64);
            assert_eq!(bounds, expected, "{backoff}");
        };
        check(Backoff::constant(millis(200)), [200; 5]);
        check(Backoff::linear(millis(200)), [200, 400, 600, 1_200, 60_000]);
        check(Backoff::exponential(millis(200)), [200, 400, 800, 6_400, 60_000]);
        check(Backoff::exponential(millis(200)).multiplier(1.5).cap(secs(1)), [200, 300, 450, 1_000, 1_000]);
        check(Backoff::default(), [1_000, 2_000, 4_000, 32_000, 60_000]);
    }

    /// ENG-2: no overflow. Trap "backoff overflow": delay ≤ cap for attempt = `u32::MAX`.
    #[test]
    fn eng_2_no_attempt_number_overflows() {
        let chance = Chance::seeded(3);
        for shape in [Backoff::constant, Backoff::linear, Backoff::exponential] {
            for jitter in [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
                for base in [Duration::ZERO, Duration::from_nanos(1), secs(59), Duration::MAX] {
                    let backoff = shape(base).jitter(jitter);
                    for retry in [0, 1, 31, 32, 63, 64, 1_023, 1_024, u32::MAX - 1, u32::MAX] {
                        let wait = backoff.wait(retry, CAP, retry % 2 == 0, chance.next());
                        assert!(wait <= CAP, "{backoff} gives {wait:?}");
                    }
                }
            }
        }
    }

    /// ENG-2: the same seed, the same waits; full jitter is even over the whole interval. Trap "synchronised
    /// jitter": callers that failed together do not come back together.
    #[test]
    fn eng_2_full_jitter_is_even_and_exact_for_a_seed() {
        let backoff = Backoff::exponential(secs(1));
        let draw = |seed| {
            let chance = Chance::seeded(seed);
            (0..10_000).map(|_| backoff.wait(2, Duration::ZERO, false, chance.next())).collect::<Vec<_>>()
        };
        let waits = draw(11);
        assert_eq!(waits, draw(11));
        let mut quarters = [0; 4];
        for wait in &waits {
            quarters[wait.as_secs() as usize] += 1;
        }
        assert!(quarters.iter().all(|n| (2_300..2_700).contains(n)), "{quarters:?}");
        let mut distinct = waits;
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 9_990, "callers come back together");
    }

    /// ENG-2: equal and decorrelated jitter stay in their bounds.
    #[test]
    fn eng_2_equal_and_decorrelated_jitter_keep_their_bounds() {
        let chance = Chance::seeded(5);
        let equal = Backoff::exponential(secs(1)).jitter(Jitter::Equal);
        let decorrelated = Backoff::exponential(secs(1)).jitter(Jitter::Decorrelated);
        let mut previous = Duration::ZERO;
        for _ in 0..10_000 {
            let wait = equal.wait(1, Duration::ZERO, false, chance.next());
            assert!((secs(1)..=secs(2)).contains(&wait));
            let next = decorrelated.wait(1, previous, false, chance.next());
            assert!(next >= secs(1) && next <= (previous.max(secs(1)) * 3).min(CAP));
            previous = next;
        }
        assert!(previous > secs(1), "it grows from its own waits");
    }

    /// ENG-2. Trap "with decorrelated jitter the first retries of 1 000 callers are spread": evenly between the base and three
    /// times the base, or the cap if that is lower.
    #[test]
    fn eng_2_decorrelated_jitter_spreads_the_first_retry() {
        for (cap, top) in [(CAP, secs(3)), (secs(2), secs(2))] {
            let backoff = Backoff::exponential(secs(1)).jitter(Jitter::Decorrelated).cap(cap);
            let chance = Chance::seeded(7);
            let mut tenths = [0; 10];
            for _ in 0..1_000 {
                let wait = backoff.wait(0, Duration::ZERO, false, chance.next());
                assert!((secs(1)..=top).contains(&wait), "{wait:?}");
                let place = (wait - secs(1)).as_secs_f64() / (top - secs(1)).as_secs_f64();
                tenths[((place * 10.0) as usize).min(9)] += 1;
            }
            assert!(tenths.iter().all(|callers| (60..150).contains(callers)), "{tenths:?}");
        }
    }

    /// ENG-1: throttled without a hint starts from a larger base: 500 ms where others start at 100 ms.
    #[test]
    fn eng_1_a_throttled_peer_gets_a_larger_base() {
        let backoff = Backoff::exponential(millis(100)).no_jitter();
        assert_eq!(backoff.wait(0, Duration::ZERO, true, 0), millis(500));
        assert_eq!(backoff.wait(1, Duration::ZERO, true, 0), secs(1));
        assert_eq!(backoff.throttled_base(secs(2)).wait(0, Duration::ZERO, true, 0), secs(2));
    }
}
