//! Asks all nodes at once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::tally::Tally;
use super::{LockNode, NodeAnswer, too_slow};
use crate::StoreError;
use crate::lock::{FencingToken, LockKey, OwnerId};

/// All nodes, each with this long to answer.
pub(super) struct Quorum<'a> {
    pub(super) nodes: &'a Arc<[Arc<dyn LockNode>]>,
    pub(super) limit: Duration,
}

pub(super) type Answers<T> = mpsc::Receiver<(usize, Result<T, StoreError>)>;

impl Quorum<'_> {
    /// Asks for the lock until the answers decide, and answers with those and with what is still to come.
    pub(super) async fn grant(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        lease: Duration,
    ) -> (Tally, Answers<NodeAnswer>) {
        let (key, owner) = (key.clone(), owner.clone());
        let mut answers = self.ask(|node| {
            let (key, owner) = (key.clone(), owner.clone());
            async move { node.grant(&key, &owner, lease).await }
        });
        let mut tally = Tally::new(self.nodes.len());
        while let Some((node, answer)) = answers.recv().await {
            tally.count(node, answer);
            if tally.is_decided() {
                break;
            }
        }
        (tally, answers)
    }

    /// Gives the empty nodes their counter, those included whose answer is still to come. The grant does not wait for it.
    pub(super) fn seed_later(&self, empty: &[usize], mut answers: Answers<NodeAnswer>, token: FencingToken) {
        let (nodes, limit, mut empty) = (self.nodes.clone(), self.limit, empty.to_vec());
        Handle::current().spawn(async move {
            while let Some((node, answer)) = answers.recv().await {
                if matches!(answer, Ok(NodeAnswer::Empty)) {
                    empty.push(node);
                }
            }
            Quorum { nodes: &nodes, limit }.seed(&empty, token).await;
        });
    }

    pub(super) async fn confirm(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        token: FencingToken,
    ) -> Result<bool, StoreError> {
        let answers = self.ask(|node| {
            let (key, owner) = (key.clone(), owner.clone());
            async move { node.confirm(&key, &owner, token).await }
        });
        self.agreed(answers).await
    }

    pub(super) async fn renew(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let answers = self.ask(|node| {
            let (key, owner) = (key.clone(), owner.clone());
            async move { node.renew(&key, &owner, lease).await }
        });
        self.agreed(answers).await
    }

    /// Gives the lock back on all nodes, and answers when a majority has. The tasks of the others go on.
    pub(super) async fn release(&self, key: &LockKey, owner: &OwnerId) -> Result<bool, StoreError> {
        let mut answers = self.ask(|node| {
            let (key, owner) = (key.clone(), owner.clone());
            async move { node.release(&key, &owner).await }
        });
        let (mut answered, mut released, mut failure) = (0, false, None);
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Ok(was_held) => {
                    answered += 1;
                    released |= was_held;
                }
                Err(error) => failure = Some(error),
            }
            if answered >= self.majority() {
                return Ok(released);
            }
        }
        Err(failure.unwrap_or_else(too_slow))
    }

    /// Gives these nodes their counter. A node that does not answer stays empty, and is asked again by the next attempt.
    pub(super) async fn seed(&self, nodes: &[usize], token: FencingToken) {
        let mut answers = self.ask_some(nodes.iter().copied(), |node| async move { node.seed(token).await });
        while answers.recv().await.is_some() {}
    }

    /// Whether a majority says yes. It is an error if the nodes that did not answer could have made it one.
    async fn agreed(&self, mut answers: Answers<bool>) -> Result<bool, StoreError> {
        let (mut yes, mut no, mut failure) = (0, 0, None);
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Ok(true) => yes += 1,
                Ok(false) => no += 1,
                Err(error) => failure = Some(error),
            }
            if yes >= self.majority() {
                return Ok(true);
            }
            if no > self.nodes.len() - self.majority() {
                return Ok(false);
            }
        }
        Err(failure.unwrap_or_else(too_slow))
    }

    fn ask<T, F, Fut>(&self, request: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(Arc<dyn LockNode>) -> Fut,
        Fut: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.ask_some(0..self.nodes.len(), request)
    }

    /// Asks each node in a task of its own, which ends within the limit: a caller that has its majority does not wait for
    /// the slow ones, and they get the request all the same.
    fn ask_some<T, F, Fut>(&self, nodes: impl Iterator<Item = usize>, request: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(Arc<dyn LockNode>) -> Fut,
        Fut: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (sender, answers) = mpsc::channel(self.nodes.len());
        let runtime = Handle::current();
        for node in nodes {
            let (sender, request, limit) = (sender.clone(), request(self.nodes[node].clone()), self.limit);
            runtime.spawn(async move {
                let answer = tokio::time::timeout(limit, request).await;
                // Nobody listens any more if a majority has answered.
                let _ = sender.send((node, answer.unwrap_or_else(|_| Err(too_slow())))).await;
            });
        }
        answers
    }

    fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }
}
