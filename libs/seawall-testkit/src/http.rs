//! HTTP/1.1 over a plain socket: messages byte by byte, for tests that look at what is on the wire.
//!
//! # Why no HTTP library?
//! A test of an HTTP client or server must not use the code that it tests, and must be able to send what no library would.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

/// The maximum wait for the bytes of a response.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A request or a response as it came: the head up to the empty line, and the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpMessage {
    /// The first line and the headers, with their line breaks.
    pub head: String,
    /// The body; its length is that of the header `content-length`.
    pub body: Vec<u8>,
}

impl HttpMessage {
    /// Reads one message.
    ///
    /// # Errors
    /// `UnexpectedEof` if the other side closes the connection before the message is complete.
    pub fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        let head = read_head(stream)?;
        let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        Ok(HttpMessage { head, body })
    }

    /// The value of a header; the case of its name does not count.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The status of a response; `None` for a request.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.trim().parse().ok()
    }

    /// Method and path of a request, such as `POST /orders`.
    #[must_use]
    pub fn request_line(&self) -> &str {
        let line = self.head.lines().next().unwrap_or_default();
        line.strip_suffix(" HTTP/1.1").unwrap_or(line)
    }

    /// The body as JSON; null if it is something else.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn read_head(stream: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// The value of a header in the head of a message; the case of its name does not count.
#[must_use]
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A client with one connection, which it keeps.
#[derive(Debug)]
pub struct HttpConnection {
    stream: BufReader<TcpStream>,
}

impl HttpConnection {
    /// Connects to an address such as `127.0.0.1:8480`.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(HttpConnection { stream: BufReader::new(stream) })
    }

    /// Sends a request and reads its response. `content-length` is added to the headers, and `host` if there is none.
    ///
    /// # Errors
    /// Those of the socket. What the other side did is not known then.
    pub fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<HttpMessage> {
        let length = body.len();
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {length}\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("host: test\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.stream.get_mut().write_all(head.as_bytes())?;
        // A server may answer before it has read all, and close: what it said counts.
        let sent = self.stream.get_mut().write_all(body);
        let response = if method == "HEAD" {
            read_head(&mut self.stream).map(|head| HttpMessage { head, body: Vec::new() })
        } else {
            HttpMessage::read(&mut self.stream)
        };
        response.or_else(|error| sent.and(Err(error)))
    }
}
