//! Timeouts that the process itself has missed.
//!
//! # Why not count them?
//! A process that is stopped by a signal, or sleeps with its machine, misses the answers of peers that are well. When it wakes,
//! all its timers are over at once, and every circuit with a few calls under way would open. A timer that fires far later than
//! it was set to says so by itself: nobody has to be told of the pause.

use super::decide::Run;
use crate::clock::Tick;
use crate::fault::{Class, Fault};

impl Run<'_> {
    /// The time of the attempt was over `at`, and the timer has fired. If that was so late that the process can't have run in
    /// between, the attempt gets a little more time, once: its answer may have come long ago, and nobody has read it.
    #[cold]
    pub(super) fn oversleeps(&mut self, at: Tick) -> bool {
        let Some(tolerance) = self.guard.pause_tolerance else { return false };
        let now = self.guard.clock.precise();
        if self.overslept || now.since(at) < tolerance {
            return false;
        }
        self.overslept = true;
        let until = now + tolerance;
        for deadline in [&mut self.attempt_deadline, &mut self.call_deadline, &mut self.deadline] {
            *deadline = until.max(*deadline);
        }
        // How long the peer took is not known.
        self.launched_at = now;
        self.ticket.restart(now);
        true
    }

    /// The operation has a timer of its own for the attempt's time, and that one may be the first to notice.
    pub(super) fn look_for_pause(&mut self, fault: Fault) {
        if fault.class() == Class::Timeout
            && let Some(tolerance) = self.guard.pause_tolerance
        {
            self.overslept |= self.now != Tick::NEVER && self.now.since(self.deadline) >= tolerance;
        }
    }
}
