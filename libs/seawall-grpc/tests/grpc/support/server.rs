//! A tonic server on loopback.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};

use super::Script;

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl TestServer {
    pub(crate) async fn start(script: &Script) -> Self {
        TestServer::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    /// Starts at this address, as after a restart.
    pub(crate) async fn start_at(address: SocketAddr, script: &Script) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).expect("the port is free");
        let listener: TcpListener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().add_service(script.clone());
        #[expect(clippy::disallowed_methods, reason = "the server of a test, which the value ends")]
        let task = tokio::spawn(async move {
            let _ = server.serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))).await;
        });
        TestServer { address, task }
    }

    pub(crate) fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect_lazy()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
