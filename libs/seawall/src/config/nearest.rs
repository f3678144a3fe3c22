//! What somebody may have meant.

/// A name without case, `-` and `_`: `maxAttempts`, `max-attempts` and `max_attempts` are one key.
pub(super) fn squash(name: &str) -> String {
    letters(name).collect()
}

/// Whether two names differ in case, `-` and `_` at most.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase)
}

/// The candidate that is most like `word`, if one is like it at all.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = squash(word).chars().take(WORD_MAX).collect();
    let near = candidates.into_iter().filter_map(|candidate| {
        let other: Vec<char> = squash(candidate).chars().collect();
        let distance = distance(&word, &other);
        // One slip in a short word, one for each three letters in a long one; and never every letter.
        let allowed = (word.len().max(other.len()) / 3).max(1);
        (distance <= allowed && distance < word.len().min(other.len())).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// No key is longer, and the distance costs the square of the length.
const WORD_MAX: usize = 64;

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            next[j] = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

/// What other libraries call it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("circuitbreaker", "breaker"),
    ("ratelimiter", "rate_limit"),
    ("throttle", "rate_limit"),
    ("timelimiter", "attempt_timeout"),
    ("timeout", "call_timeout"),
    ("hedging", "hedge"),
    ("retries", "retry"),
    ("attempts", "max_attempts"),
    ("maxretries", "max_attempts"),
    ("delay", "base"),
    ("initialdelay", "base"),
    ("initialbackoff", "base"),
    ("mindelay", "base"),
    ("maxbackoff", "cap"),
    ("strategy", "shape"),
    ("requestspersecond", "calls"),
    ("requests", "calls"),
    ("initialinterval", "base"),
    ("waitduration", "base"),
    ("maxdelay", "cap"),
    ("factor", "multiplier"),
    ("waitdurationinopenstate", "cooldown"),
    ("resettimeout", "cooldown"),
    ("breakduration", "cooldown"),
    ("failureratethreshold", "failure_rate"),
    ("failurethreshold", "consecutive_failures"),
    ("slidingwindowsize", "over_calls"),
    ("minimumnumberofcalls", "minimum_calls"),
    ("samplingduration", "over_time"),
    ("maxconcurrentcalls", "max_calls"),
    ("maxconcurrency", "max_calls"),
    ("limitforperiod", "calls"),
    ("baseconfig", "extends"),
    ("base", "extends"),
];

/// The candidate that has another name in another library.
pub(super) fn elsewhere<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = squash(word);
    let ours: Vec<&str> =
        ELSEWHERE.iter().filter(|(other, _)| *other == word).map(|(_, ours)| *ours).collect();
    candidates.into_iter().find(|candidate| ours.contains(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_a_stranger_is_not() {
        let keys = ["cooldown", "cooldown_max", "probes", "ramp", "scope"];
        assert_eq!(nearest("cooldwn", keys), Some("cooldown"));
        assert_eq!(nearest("coolDownMxa", keys), Some("cooldown_max"));
        assert_eq!(nearest("prboes", keys), Some("probes"));
        assert_eq!(nearest("rmap", keys), Some("ramp"));
        assert_eq!(nearest("window", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), keys), None);
        assert_eq!(elsewhere("waitDurationInOpenState", keys), Some("cooldown"));
    }
}
