//! What the answers of the nodes add up to.

use seawall::Fault;

use super::NodeAnswer;
use crate::StoreError;
use crate::lock::FencingToken;

/// The answers of the nodes to one attempt.
#[derive(Debug)]
pub(super) struct Tally {
    nodes: usize,
    granted: Vec<FencingToken>,
    held: Vec<FencingToken>,
    empty: Vec<usize>,
    failures: Vec<StoreError>,
}

/// What follows from the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A majority granted. `stored` says whether a majority has this token as its counter already.
    Granted { token: FencingToken, stored: bool },
    /// A majority answered, and somebody else has the lock on some of them.
    Held,
    /// The empty nodes have to learn this counter before a majority can grant.
    Seed(FencingToken),
    /// Too few nodes answered.
    Unavailable,
}

impl Tally {
    pub(super) fn new(nodes: usize) -> Self {
        Tally { nodes, granted: Vec::new(), held: Vec::new(), empty: Vec::new(), failures: Vec::new() }
    }

    pub(super) fn count(&mut self, node: usize, answer: Result<NodeAnswer, StoreError>) {
        match answer {
            Ok(NodeAnswer::Granted(token)) => self.granted.push(token),
            Ok(NodeAnswer::Held(token)) => self.held.push(token),
            Ok(NodeAnswer::Empty) => self.empty.push(node),
            Err(error) => self.failures.push(error),
        }
    }

    /// Whether the answers that are missing change nothing: a majority granted, or it is known why none can. If a node is
    /// empty, all answers are needed to know what it has lost.
    pub(super) fn is_decided(&self) -> bool {
        let others = self.nodes - self.majority();
        let refused = self.held.len() + self.failures.len() > others;
        let is_known =
            self.granted.len() + self.held.len() >= self.majority() || self.failures.len() > others;
        self.granted.len() >= self.majority() || (self.empty.is_empty() && refused && is_known)
    }

    pub(super) fn verdict(&self) -> Verdict {
        let majority = self.majority();
        let highest = self.granted.iter().chain(&self.held).max().copied().unwrap_or(FencingToken::new(0));
        if self.granted.len() >= majority {
            // Counters of nodes that refused do not matter: this grant is compared with grants only.
            let token = self.granted.iter().max().copied().unwrap_or(highest);
            let stored = self.granted.iter().filter(|granted| **granted == token).count() >= majority;
            return Verdict::Granted { token, stored };
        }
        let known = self.granted.len() + self.held.len();
        if !self.empty.is_empty() {
            let may_seed = known >= majority || self.is_new();
            return if may_seed && self.held.is_empty() {
                Verdict::Seed(highest)
            } else if may_seed {
                Verdict::Held
            } else {
                Verdict::Unavailable
            };
        }
        if known >= majority { Verdict::Held } else { Verdict::Unavailable }
    }

    /// Whether all nodes answered and most of them are empty: they are new, or nothing can be known any more.
    pub(super) fn is_new(&self) -> bool {
        let known = self.granted.len() + self.held.len();
        known < self.majority() && known + self.empty.len() == self.nodes
    }

    /// The nodes that have no counter.
    pub(super) fn empty(&self) -> &[usize] {
        &self.empty
    }

    /// The error of an attempt that too few nodes answered: the first failure, or that nodes are empty.
    pub(super) fn into_error(self) -> StoreError {
        let empty = "too many lock nodes are new or have lost their data, and not all nodes answer";
        self.failures
            .into_iter()
            .next()
            .unwrap_or_else(|| StoreError::new("taking a lock", Fault::unreachable(), empty))
    }

    fn majority(&self) -> usize {
        self.nodes / 2 + 1
    }
}
