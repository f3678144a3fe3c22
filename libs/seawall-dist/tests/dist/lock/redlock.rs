use std::sync::Arc;
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::lock::{
    Acquisition, FencingToken, LockKey, LockNode, LockStore, MemoryLocks, MemoryNode, NodeAnswer, OwnerId,
    Redlock,
};
use seawall_testkit::conformance;

const NODES: usize = 5;

fn nodes() -> Vec<Arc<MemoryNode>> {
    (0..NODES).map(|_| Arc::new(MemoryNode::new())).collect()
}

fn redlock(nodes: &[Arc<MemoryNode>]) -> Redlock {
    Redlock::new(nodes.iter().map(|node| node.clone() as Arc<dyn LockNode>))
}

/// A generator with a seed, so that a failure can be told again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// CRD-1: a lock over five nodes holds the contract of one.
#[tokio::test]
async fn crd_1_a_redlock_conforms() {
    conformance::lock(Arc::new(redlock(&nodes()))).await;
}

/// CRD-1: and with two of the five away it still does.
#[tokio::test]
async fn crd_1_a_redlock_conforms_without_a_minority() {
    let nodes = nodes();
    let store = redlock(&nodes);
    conformance::lock_tokens(&store, 1, |_| {}).await;
    nodes[1].set_reachable(false);
    nodes[4].set_reachable(false);
    conformance::lock(Arc::new(store)).await;
}

/// Takes another minority away before each grant, and lets nodes lose their data one after another.
struct Disturbance {
    nodes: Vec<Arc<MemoryNode>>,
    dice: Dice,
    losses: bool,
    /// For this many grants all nodes are there, so that the one that lost its data learns the counter.
    healing: u32,
}

impl Disturbance {
    fn new(nodes: &[Arc<MemoryNode>], losses: bool) -> Self {
        Disturbance { nodes: nodes.to_vec(), dice: Dice(1), losses, healing: 0 }
    }

    fn strike(&mut self) {
        let dice = &mut self.dice;
        let first = dice.below(NODES);
        let mut away = vec![first, (first + 1 + dice.below(NODES - 1)) % NODES];
        if self.healing > 0 {
            self.healing -= 1;
            away.clear();
        } else if self.losses && dice.below(10) == 0 {
            self.nodes[dice.below(NODES)].lose_data();
            self.healing = 3;
            away.clear();
        }
        for (number, node) in self.nodes.iter().enumerate() {
            node.set_reachable(!away.contains(&number));
        }
    }
}

fn grants(short: u32) -> u32 {
    if std::env::var_os("SEAWALL_LONG").is_some() { 1_000_000 } else { short }
}

/// CRD-1: tokens grow strictly whatever minority of the nodes is away, also if nodes lose their data one after another.
#[tokio::test]
async fn crd_1_tokens_of_a_redlock_grow_whatever_minority_is_away_or_lost() {
    let nodes = nodes();
    let (store, mut disturbance) = (redlock(&nodes), Disturbance::new(&nodes, true));
    conformance::lock_tokens(&store, 1, |_| {}).await;
    conformance::lock_tokens(&store, grants(20_000), |_| disturbance.strike()).await;
}

/// A node that does not store the largest token: "increment on each node and take the maximum".
struct NodeWithoutWriteBack(Arc<MemoryNode>);

impl LockNode for NodeWithoutWriteBack {
    fn grant<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, NodeAnswer> {
        self.0.grant(key, owner, lease)
    }

    fn confirm<'a>(&'a self, _: &'a LockKey, _: &'a OwnerId, _: FencingToken) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(true) })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        self.0.renew(key, owner, lease)
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        self.0.release(key, owner)
    }

    fn seed(&self, token: FencingToken) -> StoreFuture<'_, ()> {
        self.0.seed(token)
    }
}

/// CRD-1: the suite is red for tokens from INCR-and-max without write-back.
#[tokio::test]
#[should_panic(expected = "a fencing token did not grow")]
async fn crd_1_the_suite_is_red_for_tokens_without_write_back() {
    let nodes = nodes();
    let broken = nodes.iter().map(|node| Arc::new(NodeWithoutWriteBack(node.clone())) as Arc<dyn LockNode>);
    let (store, mut disturbance) = (Redlock::new(broken), Disturbance::new(&nodes, false));
    conformance::lock_tokens(&store, 1, |_| {}).await;
    conformance::lock_tokens(&store, 2_000, |_| disturbance.strike()).await;
}

/// CRD-1: a million grants in a row have a million growing tokens.
#[tokio::test]
async fn crd_1_a_million_tokens_grow() {
    conformance::lock_tokens(&MemoryLocks::new(), 1_000_000, |_| {}).await;
}

async fn take(store: &Redlock, lease: Duration) -> Result<(OwnerId, Acquisition), String> {
    let owner = OwnerId::random();
    let key = LockKey::new("lock:node:loss:1").unwrap();
    let answer = store.acquire(&key, &owner, lease).await.map_err(|error| error.to_string())?;
    Ok((owner, answer))
}

/// CRD-1: without a majority nothing is granted, nothing is left behind, and new nodes have to answer all once.
#[tokio::test]
async fn crd_1_a_minority_grants_nothing() {
    let nodes = nodes();
    let (store, lease) = (redlock(&nodes), Duration::from_secs(30));
    nodes[0].set_reachable(false);
    let error = take(&store, lease).await.unwrap_err();
    assert!(error.contains("asking a lock node failed"), "{error}");
    nodes[0].set_reachable(true);
    let (owner, first) = take(&store, lease).await.unwrap();
    assert!(matches!(first, Acquisition::Granted(_)));
    let key = LockKey::new("lock:node:loss:1").unwrap();
    assert!(store.renew(&key, &owner, lease).await.unwrap());
    for node in &nodes[..3] {
        node.set_reachable(false);
    }
    assert!(store.renew(&key, &owner, lease).await.is_err(), "a minority renewed a lock");
    assert!(take(&store, lease).await.is_err(), "a minority granted a lock");
    nodes.iter().for_each(|node| node.set_reachable(true));
    store.release(&key, &owner).await.unwrap();
    // Three of five lost the lock: it is lost, and the next grant has a larger token.
    let (owner, _) = take(&store, lease).await.unwrap();
    for node in &nodes[..2] {
        node.lose_data();
    }
    assert!(store.renew(&key, &owner, lease).await.unwrap(), "a majority still has it");
    assert!(matches!(take(&store, lease).await, Ok((_, Acquisition::Held))));
    nodes[2].lose_data();
    assert!(!store.renew(&key, &owner, lease).await.unwrap(), "a minority renewed a lock");
}
