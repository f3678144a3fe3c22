//! Looks whether a server answers over HTTP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The part of an answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 * 1_024;

/// Whether the server answers a GET of this path with this text in its status line, its headers or its body.
pub(crate) fn answers_http(port: u16, path: &str, text: &str) -> bool {
    let ask = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        std::io::Result::Ok(String::from_utf8_lossy(&answer).contains(text))
    };
    ask().unwrap_or(false)
}
