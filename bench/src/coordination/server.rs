//! Servers of a benchmark. The launcher of the testkit is not used here: it would move every clock of the engine's rows.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A Redis that keeps nothing on disk. It is killed when the value is dropped.
pub(super) struct Redis {
    process: Child,
    address: SocketAddr,
}

impl Redis {
    pub(super) fn start() -> io::Result<Redis> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let redis = Redis { process, address };
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                return Ok(redis);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(io::Error::other("redis-server did not start"))
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
