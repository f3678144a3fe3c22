//! The advisory locks of the hub. All have one namespace, so that they don't meet those of other programs in the database.

/// The first key of every advisory lock: "seaw" as a number.
pub(in crate::postgres) const NAMESPACE: i32 = 0x7365_6177;

/// The number of locks for orders, whose second keys are the numbers below it.
pub(in crate::postgres) const ORDER_STRIPES: i32 = 1024;

/// Held while the tables are created or changed, and while a process becomes a node.
pub(in crate::postgres) const STARTING: i32 = ORDER_STRIPES;

/// The keys of nodes begin here.
const NODES: i32 = 2048;

/// Returns the second key of the lock that a node holds for as long as it is connected. Epochs that share a key are two thousand
/// million starts apart.
pub(in crate::postgres) fn of_node(epoch: i64) -> i32 {
    let keys = i64::from(i32::MAX - NODES);
    NODES + i32::try_from(epoch.rem_euclid(keys)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-15: the lock of a node is never that of an order or of a start.
    #[test]
    fn hub_15_locks_of_nodes_are_apart_from_all_others() {
        for epoch in [0, 1, 2_147_000_000, i64::from(i32::MAX), i64::MAX] {
            assert!(of_node(epoch) >= NODES, "{epoch}");
        }
        assert_ne!(of_node(1), of_node(2));
    }
}
