//! How long answers take, in buckets that are a quarter of a power of two wide.

/// Enough for every number of nanoseconds.
pub(crate) const BUCKETS: usize = 256;

/// The bucket that so many nanoseconds fall into.
pub(crate) fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.max(4);
    let power = nanos.ilog2();
    // The two bits below the highest say which quarter.
    let quarter = (nanos >> (power - 2)) & 3;
    (power * 4) as usize + quarter as usize
}

/// The longest time that falls into a bucket.
pub(crate) fn longest_of(bucket: usize) -> u64 {
    let (power, quarter) = (bucket as u32 / 4, bucket as u64 % 4);
    let width = 1_u64 << power.saturating_sub(2);
    (1_u64 << power.min(63)).saturating_add(width.saturating_mul(quarter + 1)) - 1
}

/// The bucket below which this share (in millionths) of the counts lies.
pub(crate) fn percentile(counts: impl Iterator<Item = u64> + Clone, share: u64) -> Option<usize> {
    let total: u128 = counts.clone().map(u128::from).sum();
    let wanted = (total * u128::from(share)).div_ceil(1_000_000).max(1);
    let mut seen = 0;
    counts.enumerate().find_map(|(bucket, count)| {
        seen += u128::from(count);
        (seen >= wanted).then_some(bucket)
    })
}
