//! HTTP/1.1 by hand, as little of it as a load driver needs: it shares two cores with what it measures.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where the parts of a message end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    pub head: usize,
    pub whole: usize,
}

/// The first message in these bytes, when it is whole. Both sides of these measurements send a `content-length`.
pub fn message_in(bytes: &[u8]) -> Option<Message> {
    let (mut line_at, mut length) = (0, 0);
    loop {
        let line = &bytes[line_at..];
        let end = line.iter().position(|byte| *byte == b'\n')?;
        let line = &line[..end];
        line_at += end + 1;
        if line.len() <= 1 {
            let whole = line_at + length;
            return (bytes.len() >= whole).then_some(Message { head: line_at, whole });
        }
        const NAME: &[u8] = b"content-length:";
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let digits = line[NAME.len()..].iter().filter(|byte| byte.is_ascii_digit());
            length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
        }
    }
}

/// A connection that is kept.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    last: Message,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(8 * 1024), last: Message { head: 0, whole: 0 } })
    }

    /// Sends a request and waits for the status of its answer.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        self.buffer.clear();
        self.stream.write_all(request).await?;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(message) = message_in(&self.buffer) {
                self.last = message;
                let digits = self.buffer.get(9..12).unwrap_or_default();
                return Ok(digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')));
            }
        }
    }

    /// The head of the last answer.
    pub fn head(&self) -> &[u8] {
        self.buffer.get(..self.last.head).unwrap_or_default()
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        self.buffer.get(self.last.head..self.last.whole).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_whole_message_and_no_half_one() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\ndate: x\r\n\r\nokHTTP";
        assert_eq!(message_in(text), Some(Message { head: 53, whole: 55 }));
        assert_eq!(message_in(&text[..54]), None);
        assert_eq!(message_in(&text[..40]), None);
        assert_eq!(message_in(b"POST / HTTP/1.1\r\n\r\n"), Some(Message { head: 19, whole: 19 }));
    }
}
