//! The policies of the plain model, each as lists and counters. Time is a number of units.

/// When a circuit opens, and how it closes again.
#[derive(Clone, Copy, Debug)]
pub(super) struct CircuitSettings {
    pub(super) trip: Trip,
    /// Whether a call with all its attempts is one to it.
    pub(super) of_calls: bool,
    pub(super) cooldown: u64,
    /// Whether each further trip doubles the cooldown, up to eight times the first.
    pub(super) doubles: bool,
    pub(super) close_after: u32,
    pub(super) lease: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Trip {
    /// So many failures in a row.
    Row(u32),
    /// A percentage of the last so many, of which there must be a minimum.
    Rate { percent: u8, window: u32, minimum: u32 },
}

/// What a call was to its circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Was {
    Good,
    Bad,
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Closed,
    Open,
    HalfOpen,
}

/// A circuit. As calls come one after the other, at most one probe is ever under way.
#[derive(Debug)]
pub(super) struct Circuit {
    settings: CircuitSettings,
    place: Place,
    /// When this phase began. Phases never begin at the same time: one that would begins a unit later.
    since: u64,
    /// The outcomes since it closed, true for bad ones.
    bad: Vec<bool>,
    trips: u32,
    good_probes: u32,
    /// When half-open ends by itself.
    lease_ends: u64,
    /// Calls that were abandoned early, and answers, of late.
    abandoned: u32,
    answers: u32,
    /// Since when the abandoned ones outnumber the answers.
    suspected: Option<u64>,
}

impl Circuit {
    pub(super) fn new(settings: CircuitSettings) -> Self {
        Circuit {
            settings,
            place: Place::Closed,
            since: 0,
            bad: Vec::new(),
            trips: 0,
            good_probes: 0,
            lease_ends: 0,
            abandoned: 0,
            answers: 0,
            suspected: None,
        }
    }

    /// Lets a call through, or says how long until it is worth asking again.
    pub(super) fn admit(&mut self, now: u64) -> Result<(), u64> {
        match self.place {
            Place::Closed => Ok(()),
            Place::Open => {
                let ends = self.since + self.cooldown(self.trips);
                if now < ends {
                    return Err(ends - now);
                }
                self.good_probes = 0;
                self.probe(now);
                Ok(())
            }
            Place::HalfOpen => {
                self.look(now);
                if self.place == Place::HalfOpen {
                    self.probe(now);
                }
                Ok(())
            }
        }
    }

    /// What time alone decides: a half-open circuit with good probes closes when nobody has called for a lease.
    pub(super) fn look(&mut self, now: u64) -> Place {
        if self.place == Place::HalfOpen && now >= self.lease_ends && self.good_probes > 0 {
            self.enter(Place::Closed, now);
        }
        self.place
    }

    pub(super) fn settle(&mut self, was: Was, now: u64) {
        match (self.place, was) {
            (_, Was::Nothing) | (Place::Open, _) => {}
            (Place::Closed, _) => {
                self.bad.push(was == Was::Bad);
                if self.is_enough() {
                    self.open(now);
                }
            }
            (Place::HalfOpen, Was::Bad) => self.open(now),
            (Place::HalfOpen, Was::Good) => {
                self.good_probes += 1;
                // A good answer renews the lease, in steps of a quarter of it.
                let quarter = self.settings.lease / 4;
                let renewed = (now.saturating_sub(self.since) / quarter).min(63) * quarter;
                self.lease_ends = self.since + self.settings.lease + renewed;
                if self.good_probes >= self.settings.close_after {
                    self.enter(Place::Closed, now);
                }
            }
        }
    }

    /// The peer has answered.
    pub(super) fn answered(&mut self) {
        if self.place != Place::Open && self.abandoned > 0 {
            self.answers += 1;
            self.weigh();
        }
    }

    /// A call that started then was abandoned early. Says what it was.
    pub(super) fn abandoned(&mut self, started: u64, now: u64) -> Was {
        if self.place == Place::Open {
            return Was::Nothing;
        }
        // Whoever raises the suspicion does not count yet.
        let blamed = self.suspected.is_some_and(|since| started >= since);
        self.abandoned += 1;
        let enough = if self.place == Place::HalfOpen { 2 } else { 16 };
        if self.suspected.is_none() && self.abandoned + self.answers >= enough {
            self.suspected = Some(now);
        }
        self.weigh();
        if blamed { Was::Bad } else { Was::Nothing }
    }

    fn weigh(&mut self) {
        if self.abandoned + self.answers >= 32 {
            self.abandoned /= 2;
            self.answers /= 2;
        }
        if self.abandoned == 0 {
            self.answers = 0;
        }
        if self.abandoned <= self.answers {
            self.suspected = None;
        }
    }

    fn is_enough(&self) -> bool {
        match self.settings.trip {
            Trip::Row(failures) => self.bad.iter().rev().take_while(|bad| **bad).count() >= failures as usize,
            Trip::Rate { percent, window, minimum } => {
                let last = &self.bad[self.bad.len().saturating_sub(window as usize)..];
                let failures = last.iter().filter(|bad| **bad).count();
                last.len() >= minimum as usize
                    && failures > 0
                    && failures * 100 >= usize::from(percent) * last.len()
            }
        }
    }

    fn open(&mut self, now: u64) {
        let again = (self.trips + 1).min(7);
        // Closed for as long as it would be open now: that is a new trouble.
        let healed = self.place == Place::Closed && now.saturating_sub(self.since) >= self.cooldown(again);
        self.trips = if healed { 1 } else { again };
        self.enter(Place::Open, now);
    }

    fn probe(&mut self, now: u64) {
        self.enter(Place::HalfOpen, now);
        self.lease_ends = self.since + self.settings.lease;
    }

    fn enter(&mut self, place: Place, now: u64) {
        self.place = place;
        self.since = now.max(self.since + 1);
        self.bad.clear();
        if place == Place::Closed || place == Place::Open && self.suspected.is_none() {
            (self.abandoned, self.answers, self.suspected) = (0, 0, None);
        }
        if place == Place::Closed {
            self.good_probes = 0;
        }
    }

    fn cooldown(&self, trip: u32) -> u64 {
        let times = if self.settings.doubles { 1 << (trip - 1).min(3) } else { 1 };
        self.settings.cooldown * times
    }
}

/// How many retries are allowed.
#[derive(Clone, Copy, Debug)]
pub(super) enum BudgetSettings {
    /// A percentage of the calls in the window, and so many a second.
    Share { percent: u8, floor: u8 },
    /// Tokens, and hundredths of one that a success brings back.
    Tokens { max: u8, hundredths: u8 },
}

#[derive(Debug)]
pub(super) struct Allowance {
    settings: BudgetSettings,
    /// When first attempts and retries began.
    calls: Vec<u64>,
    retries: Vec<u64>,
    /// In thousandths.
    tokens: u64,
    /// When the floor will be full again, in nanoseconds.
    floor_due: u64,
    /// How many retries of the floor are to be repaid, and when the last of them was.
    debt: u64,
    debt_since: u64,
    /// What paid for the retry that was taken last, if it was the floor.
    paid: Option<FloorPayment>,
}

#[derive(Clone, Copy, Debug)]
struct FloorPayment {
    at: u64,
    /// The floor's due time then.
    due: u64,
    raised_debt: bool,
}

/// A debt is forgotten after a minute, in units.
const DEBT_LIFETIME: u64 = 60_000_000_000 >> 20;

/// The window of a budget: eight slices of so many units. The oldest one is dropped as a whole.
pub(super) const SLICE: u64 = 128;
pub(super) const WINDOW: u64 = 8 * SLICE;

impl Allowance {
    pub(super) fn new(settings: BudgetSettings) -> Self {
        let tokens = match settings {
            BudgetSettings::Tokens { max, .. } => u64::from(max) * 1_000,
            BudgetSettings::Share { .. } => 0,
        };
        let (calls, retries) = (Vec::new(), Vec::new());
        Allowance { settings, calls, retries, tokens, floor_due: 0, debt: 0, debt_since: 0, paid: None }
    }

    pub(super) fn first_attempt(&mut self, now: u64) {
        if let BudgetSettings::Share { .. } = self.settings {
            self.calls.push(now);
        }
    }

    /// Takes a retry now, for an attempt that starts later or never, or denies it.
    pub(super) fn try_take(&mut self, now: u64) -> bool {
        let percent = match self.settings {
            BudgetSettings::Share { percent, .. } => percent,
            BudgetSettings::Tokens { max, .. } => return self.tokens * 2 > u64::from(max) * 1_000,
        };
        let (calls, mut retries) = self.in_window(now);
        if now - self.debt_since >= DEBT_LIFETIME {
            self.debt = 0;
        }
        self.paid = None;
        while (retries + 1) * 100 <= calls * u64::from(percent) {
            self.retries.push(now);
            retries += 1;
            // First the share repays what the floor has paid for: the place is taken, and nobody gets it.
            if calls < 100 || self.debt == 0 {
                return true;
            }
            self.debt -= 1;
        }
        let Some(due) = self.floor_then(now) else { return false };
        let raised_debt = self.debt < self.floor_burst();
        self.debt += u64::from(raised_debt);
        (self.floor_due, self.debt_since) = (due, now);
        self.paid = Some(FloorPayment { due, raised_debt, at: now });
        self.retries.push(now);
        true
    }

    /// When the floor would be full again after one more retry, if it has one.
    fn floor_then(&self, now: u64) -> Option<u64> {
        let BudgetSettings::Share { floor: 1.., .. } = self.settings else { return None };
        let (interval, now_nanos) = (self.floor_interval(), now << 20);
        let then = self.floor_due.max(now_nanos) + interval;
        (self.in_window(now).0 < 100 && then - now_nanos <= interval * self.floor_burst()).then_some(then)
    }

    fn floor_interval(&self) -> u64 {
        let BudgetSettings::Share { floor, .. } = self.settings else { return 0 };
        1_000_000_000 / u64::from(floor)
    }

    /// What a window brings, and one at least.
    fn floor_burst(&self) -> u64 {
        let BudgetSettings::Share { floor, .. } = self.settings else { return 0 };
        (u64::from(floor) * (WINDOW << 20) / 1_000_000_000).max(1)
    }

    /// The retry that was taken last never started.
    pub(super) fn give_back(&mut self, now: u64) {
        self.retries.pop();
        let Some(paid) = self.paid else { return };
        if now << 20 < paid.due {
            self.floor_due -= self.floor_interval();
        }
        if paid.raised_debt && now - paid.at < DEBT_LIFETIME {
            self.debt = self.debt.saturating_sub(1);
        }
    }

    pub(super) fn succeeded(&mut self, first_attempt: bool) {
        if let (BudgetSettings::Tokens { max, hundredths }, true) = (self.settings, first_attempt) {
            self.tokens = (self.tokens + u64::from(hundredths) * 10).min(u64::from(max) * 1_000);
        }
    }

    pub(super) fn failed(&mut self) {
        self.tokens = self.tokens.saturating_sub(1_000);
    }

    pub(super) fn in_window(&self, now: u64) -> (u64, u64) {
        let count = |times: &[u64], slices: u64| {
            let oldest = (now / SLICE).saturating_sub(slices - 1);
            times.iter().filter(|at| **at / SLICE >= oldest).count() as u64
        };
        // Retries are remembered for two slices more, so that none is forgotten within the window.
        (count(&self.calls, 8), count(&self.retries, 10))
    }
}

/// A bucket of tokens, in units of time: a call takes an interval, and time fills it up to the burst.
#[derive(Debug)]
pub(super) struct Bucket {
    interval: u64,
    full: u64,
    level: u64,
    filled_at: u64,
}

impl Bucket {
    pub(super) fn new(interval: u64, burst: u32, now: u64) -> Self {
        let full = interval * u64::from(burst);
        Bucket { interval, full, level: full, filled_at: now }
    }

    /// Takes a call, or says how long until one can be taken.
    pub(super) fn take(&mut self, now: u64) -> Result<(), u64> {
        self.level = (self.level + (now - self.filled_at)).min(self.full);
        self.filled_at = now;
        if self.level < self.interval {
            return Err(self.interval - self.level);
        }
        self.level -= self.interval;
        Ok(())
    }
}
