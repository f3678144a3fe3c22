//! A TCP proxy that breaks the network on request.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a [`FaultProxy`] does with the connections that go through it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum NetworkFault {
    /// Passes every byte on.
    #[default]
    None,
    /// Passes nothing on, in either direction, and keeps all connections open: a network partition. Bytes that were sent
    /// meanwhile arrive when the partition ends.
    Partition,
    /// Passes requests on and holds the responses back: the server works, and nobody learns of it.
    LostResponses,
    /// Closes all connections, and new ones at once.
    Refuse,
    /// Delays every piece of data by this much, in each direction.
    Delay(Duration),
}

/// A TCP proxy in front of a server, on a loopback port and a thread of its own.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// use seawall_testkit::servers::{FaultProxy, NetworkFault};
/// let proxy = FaultProxy::start(server.local_addr()?)?;
/// let client = std::net::TcpStream::connect(proxy.address())?;
/// proxy.set(NetworkFault::Partition);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    fault: Arc<watch::Sender<NetworkFault>>,
}

impl FaultProxy {
    /// Starts a proxy in front of this address. It ends when the value is dropped.
    pub fn start(server: SocketAddr) -> io::Result<FaultProxy> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (fault, changes) = watch::channel(NetworkFault::None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new()
            .name("fault proxy".into())
            .spawn(move || runtime.block_on(accept(listener, server, changes)))?;
        Ok(FaultProxy { address, fault: Arc::new(fault) })
    }

    /// The address that clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to all connections from now on, those that are open included.
    pub fn set(&self, fault: NetworkFault) {
        self.fault.send_replace(fault);
    }
}

/// Takes connections until the proxy is dropped.
async fn accept(listener: std::net::TcpListener, server: SocketAddr, changes: watch::Receiver<NetworkFault>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = tokio::task::JoinSet::new();
    let mut end = changes.clone();
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closed(&mut end) => return,
        };
        if let Ok((client, _)) = client {
            connections.spawn(carry(client, server, changes.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries the bytes of one connection in both directions.
async fn carry(client: TcpStream, server: SocketAddr, mut changes: watch::Receiver<NetworkFault>) {
    let refused = changes.clone();
    let connect = async {
        wait_until(&mut changes, |fault| fault != NetworkFault::Partition).await;
        TcpStream::connect(server).await
    };
    let Ok(server) = connect.await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let held = |fault| matches!(fault, NetworkFault::Partition);
    let held_back = |fault| matches!(fault, NetworkFault::Partition | NetworkFault::LostResponses);
    tokio::select! {
        () = copy(from_client, to_server, refused.clone(), held) => {}
        () = copy(from_server, to_client, refused.clone(), held_back) => {}
        () = until_refused(refused.clone()) => {}
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut changes: watch::Receiver<NetworkFault>,
    held: impl Fn(NetworkFault) -> bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return };
        wait_until(&mut changes, |fault| !held(fault)).await;
        let fault = *changes.borrow();
        if let NetworkFault::Delay(delay) = fault {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn until_refused(mut changes: watch::Receiver<NetworkFault>) {
    wait_until(&mut changes, |fault| fault == NetworkFault::Refuse).await;
}

async fn closed(changes: &mut watch::Receiver<NetworkFault>) {
    while changes.changed().await.is_ok() {}
}

/// Waits until the fault is one of these. If the proxy is gone, waits for ever: whoever accepts ends this task.
async fn wait_until(
    changes: &mut watch::Receiver<NetworkFault>,
    mut wanted: impl FnMut(NetworkFault) -> bool,
) {
    if changes.wait_for(|fault| wanted(*fault)).await.is_err() {
        std::future::pending::<()>().await;
    }
}
