//! Points in time that outlive a process, and durations as text. `seawall::config::duration` reads what [`written`] writes.

use std::time::Duration;

pub use seawall_dist::Millis;

/// The units of a duration on the wire, in milliseconds.
const UNITS: [(u128, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];

/// Writes a duration for the API, in the largest unit that it is a whole number of: `3d`, `90s`, `1500ms`.
#[must_use]
pub fn written(duration: Duration) -> String {
    let millis = duration.as_millis();
    let whole = UNITS.iter().find(|(size, _)| millis > 0 && millis.is_multiple_of(*size));
    match whole {
        _ if millis == 0 => "0s".to_owned(),
        Some((size, unit)) => format!("{}{unit}", millis / size),
        None => format!("{millis}ms"),
    }
}

/// Writes a duration for people, to the second: `2 min 30 s`.
#[must_use]
pub fn for_people(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{} ms", duration.as_millis()),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Writes a remaining time for people, rounded up to one unit: `under 1 s`, `3 s`, `4 min`, `2 h`, `3 d`.
#[must_use]
pub fn remaining(duration: Duration) -> String {
    let seconds = duration.as_millis().div_ceil(1_000);
    match seconds {
        _ if duration < Duration::from_secs(1) => "under 1 s".to_owned(),
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds.div_ceil(60)),
        7_200..=172_799 => format!("{} h", seconds.div_ceil(3_600)),
        _ => format!("{} d", seconds.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-14: durations are written as in version 1, and what is written is read again.
    #[test]
    fn hub_14_a_duration_is_written_as_before() {
        for (millis, text, people, rest) in [
            (0, "0s", "0 ms", "under 1 s"),
            (250, "250ms", "250 ms", "under 1 s"),
            (1_000, "1s", "1 s", "1 s"),
            (1_500, "1500ms", "1 s", "2 s"),
            (90_000, "90s", "1 min 30 s", "90 s"),
            (150_000, "150s", "2 min 30 s", "3 min"),
            (3_600_000, "1h", "1 h", "60 min"),
            (90_000_000, "25h", "25 h", "25 h"),
            (259_200_000, "3d", "72 h", "3 d"),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(
                (&*written(duration), &*for_people(duration), &*remaining(duration)),
                (text, people, rest)
            );
            assert_eq!(seawall::config::duration(text), Ok(duration));
        }
    }
}
