//! The service that the hub calls in these tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::ops::Deref;

use seawall_testkit::peer::HttpPeer;
use seawall_testkit::until_blocking;

pub(crate) use seawall_testkit::peer::{PeerBehavior, ReceivedRequest};

/// A scripted service. A handle: clones share everything.
#[derive(Clone)]
pub(crate) struct Peer {
    /// The URL of the service.
    pub(crate) address: String,
    peer: HttpPeer,
}

impl Deref for Peer {
    type Target = HttpPeer;

    fn deref(&self) -> &HttpPeer {
        &self.peer
    }
}

impl Peer {
    pub(crate) fn start() -> Self {
        let peer = HttpPeer::start();
        Peer { address: peer.url(), peer }
    }

    /// The only request that came, when it has come.
    pub(crate) fn only(&self) -> ReceivedRequest {
        until_blocking("a request comes", || self.count() > 0);
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests[0].clone()
    }

    /// The number of responses below 300 for each delivery.
    pub(crate) fn arrived(&self) -> BTreeMap<String, u32> {
        let mut arrived = BTreeMap::new();
        for request in
            self.requests().iter().filter(|request| request.status.is_some_and(|status| status < 300))
        {
            *arrived.entry(request.header("seawall-delivery").unwrap().to_owned()).or_default() += 1;
        }
        arrived
    }
}
