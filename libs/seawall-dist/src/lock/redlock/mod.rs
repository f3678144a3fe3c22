//! One lock over several independent nodes.

mod memory;
mod node;
mod quorum;
mod tally;

pub use memory::MemoryNode;
pub use node::{LockNode, NodeAnswer};

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall::Fault;

use self::quorum::Quorum;
use self::tally::Verdict;
use super::{Acquisition, FencingToken, LockKey, LockStore, OwnerId, RELEASE_LIMIT};
use crate::{StoreError, StoreFuture};

/// A node has the lease divided by this number to answer: taking a lock needs two rounds, and time has to be left of it.
pub const NODE_TIMEOUT_SHARE: u32 = 4;

/// The longest time that a node has to answer, however long the lease is: two rounds fit into
/// [`ATTEMPT_LIMIT`](super::ATTEMPT_LIMIT).
pub const NODE_TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// A lock over N independent nodes that holds as long as a majority of them works: Redlock, with a fencing token.
///
/// # Why is the largest counter written back?
/// Each node counts its grants. "Increment on each node and take the maximum" is not enough: the maximum may come from a node
/// that the next majority does not contain. So the token counts only when a majority of the nodes has stored it; every later
/// majority has one of those nodes in it, and counts on from there. Where a majority has the same counter already, which is
/// the normal case, no second round is needed.
///
/// # A node that has lost its data
/// It does not vote: its counter would begin anew. It learns the counter from a majority of the others and votes from then
/// on, so that any number of nodes may lose their data one after another, as long as a majority has its own at any moment.
/// Nodes that are all empty are new ones; that is accepted only if every node answers.
///
/// It needs tokio's runtime: each request to a node is a task, so that a slow node does not hold up the others.
pub struct Redlock {
    nodes: Arc<[Arc<dyn LockNode>]>,
}

impl Redlock {
    /// A lock over these nodes: an odd number, three or more. With one node it is a lock without a second node to fall back
    /// on, and with two it needs both.
    ///
    /// # Panics
    /// If there is no node.
    #[must_use]
    pub fn new(nodes: impl IntoIterator<Item = Arc<dyn LockNode>>) -> Redlock {
        let nodes: Arc<[_]> = nodes.into_iter().collect();
        assert!(!nodes.is_empty(), "a lock needs a node");
        Redlock { nodes }
    }

    /// How many nodes have to agree.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    fn quorum(&self, limit: Duration) -> Quorum<'_> {
        Quorum { nodes: &self.nodes, limit }
    }

    async fn acquire_lock(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<Acquisition, StoreError> {
        let quorum = self.quorum(node_timeout(lease));
        let (mut tally, mut answers) = quorum.grant(key, owner, lease).await;
        if let Verdict::Seed(token) = tally.verdict() {
            // New nodes begin at the time, so that even if all of them lose their data the tokens do not begin at one.
            let token = token.max(if tally.is_new() { time_token() } else { token });
            quorum.seed(tally.empty(), token).await;
            (tally, answers) = quorum.grant(key, owner, lease).await;
        }
        let acquired = match tally.verdict() {
            Verdict::Granted { token, stored } => {
                quorum.seed_later(tally.empty(), answers, token);
                let is_stored = stored || quorum.confirm(key, owner, token).await?;
                if is_stored { Ok(Acquisition::Granted(token)) } else { Ok(Acquisition::Held) }
            }
            Verdict::Held => Ok(Acquisition::Held),
            Verdict::Seed(_) | Verdict::Unavailable => Err(tally.into_error()),
        };
        if !matches!(acquired, Ok(Acquisition::Granted(_))) {
            // What a minority granted would keep everybody out until the lease ends. The tasks go on if this gives up.
            let release = self.quorum(RELEASE_LIMIT);
            let _ = tokio::time::timeout(node_timeout(lease), release.release(key, owner)).await;
        }
        acquired
    }
}

/// How long a node has to answer.
fn node_timeout(lease: Duration) -> Duration {
    (lease / NODE_TIMEOUT_SHARE).min(NODE_TIMEOUT_MAX)
}

/// Microseconds since 1970: smaller than 2⁵³ until the year 2255, which is what a script of Redis can count to.
fn time_token() -> FencingToken {
    let wall = seawall::Clock::system().wall();
    let since_1970 = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    FencingToken::new(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

impl LockStore for Redlock {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        Box::pin(self.acquire_lock(key, owner, lease))
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.quorum(node_timeout(lease)).renew(key, owner, lease).await })
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.quorum(RELEASE_LIMIT).release(key, owner).await })
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").field("nodes", &self.nodes.len()).finish()
    }
}

/// The error of a node that did not answer in time.
fn too_slow() -> StoreError {
    StoreError::new("asking a lock node", Fault::timeout(), "the node did not answer in time")
}
