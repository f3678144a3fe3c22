use std::time::Duration;

use proptest::prelude::*;

use super::machine::jittered;
use crate::lease::Timetable;

proptest! {
    /// CRD-1: whatever the lease, two renewals fit before the work is cancelled, and it is cancelled before the lease ends.
    #[test]
    fn crd_1_the_times_of_a_lease_are_in_order(millis in 50_u64..3_600_000, started in 0_u64..1_000_000) {
        let (lease, started) = (Duration::from_millis(millis), Duration::from_millis(started));
        let table = Timetable::new(lease, lease / 100 + Duration::from_millis(2));
        let first = table.renew_at(started);
        let second = table.repeat_at(first + table.renewal_limit());
        prop_assert!(started < first && first < second);
        prop_assert!(second < table.cancel_at(started));
        prop_assert!(table.cancel_at(started) < table.valid_until(started));
        prop_assert!(table.valid_until(started) < started + lease);
    }

    /// CRD-1: a delay is between half of it and all of it.
    #[test]
    fn crd_1_a_delay_has_jitter_and_a_bound(fraction in 0.0..1.0_f64) {
        let delay = Duration::from_millis(200);
        prop_assert!(jittered(delay, fraction) <= delay && jittered(delay, fraction) * 2 >= delay);
    }
}
