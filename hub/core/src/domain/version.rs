//! Versions of what is registered.

/// Returns the version that a change has to name: one more than the stored one, or 1 if nothing is stored.
#[must_use]
pub const fn next_version(stored: Option<u64>) -> u64 {
    match stored {
        Some(stored) => stored + 1,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-1: versions count from 1.
    #[test]
    fn hub_1_versions_count_from_one() {
        assert_eq!([None, Some(1), Some(41)].map(next_version), [1, 2, 42]);
    }
}
