//! A client of a hub: what the command line talks through.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use seawall::{Backoff, Guard, Kind, Retry, Safety, millis, secs};
use seawall_http::{Auth, BodyStream, Egress, HttpClient, Method, Request, Secret};
use seawall_hub_core::domain::time::Millis;

/// An answer is no larger: 500 dead letters with all their evidence fit.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A refusal is no larger.
const REFUSAL_BYTES_MAX: usize = 1024 * 1024;
/// A hub that is there takes the connection in a fraction of it.
const CONNECT_TIMEOUT: Duration = secs(5);
/// So often is something sent that may be sent again, and then the hub is gone, or its disk stays full.
const ATTEMPTS: u32 = 8;
/// The longest wait between them, unless the hub asks for more.
const WAIT_MAX: Duration = secs(10);

/// A client of one hub.
#[derive(Clone, Debug)]
pub struct Client {
    http: HttpClient,
    base: String,
    auth: Auth,
    timeout: Duration,
}

/// A question to a hub.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before `Client::ask`"]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
    patient: bool,
}

/// What a hub answered, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
    /// Where it sends whoever asked: there is no hub here, but perhaps there.
    pub location: Option<String>,
}

/// An answer that is too large to be read at once.
#[derive(Debug)]
pub enum Opened {
    /// It went well, and this is to be read.
    Body(Pieces),
    /// It did not, and this is why.
    Refused(Answer),
}

/// The body of an answer, piece by piece.
pub struct Pieces {
    body: BodyStream,
    /// So long the next one may take.
    timeout: Duration,
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Pieces {
    /// The next one; none at the end. A body that breaks off is an error, and no end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match tokio::time::timeout(self.timeout, self.body.chunk()).await {
            Ok(piece) => piece.map_err(|error| ClientError::NoAnswer(error.to_string())),
            Err(_) => Err(late(self.timeout)),
        }
    }
}

fn late(timeout: Duration) -> ClientError {
    ClientError::NoAnswer(format!("no answer within {timeout:?}"))
}

/// Why there is no client, or no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// It can't be asked like this.
    Wrong(String),
    /// Nobody answers.
    NoAnswer(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Wrong(why) | ClientError::NoAnswer(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ClientError {}

impl Ask {
    /// Something that changes nothing.
    pub fn get(path: impl Into<String>) -> Self {
        Ask::new("GET", path)
    }

    /// A new thing, or a verb.
    pub fn post(path: impl Into<String>) -> Self {
        Ask::new("POST", path)
    }

    /// Something takes the place of what is there.
    pub fn put(path: impl Into<String>) -> Self {
        Ask::new("PUT", path)
    }

    /// Some fields are changed.
    pub fn patch(path: impl Into<String>) -> Self {
        Ask::new("PATCH", path)
    }

    /// Something is taken away.
    pub fn delete(path: impl Into<String>) -> Self {
        Ask::new("DELETE", path)
    }

    fn new(method: &'static str, path: impl Into<String>) -> Self {
        Ask { method, path: path.into(), headers: Vec::new(), body: None, patient: false }
    }

    /// With this JSON.
    pub fn json(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// With this header, if there is a value for it.
    pub fn header(mut self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        self.headers.extend(value.map(|value| (name, value.into())));
        self
    }

    /// It may be sent more than once, and is, until the hub has room for it again.
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }
}

impl Client {
    /// A client of the hub at this address, with this key. `timeout` is for one answer.
    pub fn new(address: &str, key: Option<&str>, timeout: Duration) -> Result<Self, ClientError> {
        let wrong =
            |why: &dyn fmt::Display| ClientError::Wrong(format!("`{address}` is no address of a hub: {why}"));
        let base = address.trim_end_matches('/');
        Request::get(base).map_err(|error| wrong(&error))?;
        if base.contains(['?', '#']) {
            return Err(wrong(&"it ends before the query"));
        }
        let auth = match key {
            None => Auth::none(),
            Some(key) => {
                Auth::bearer(&Secret::new(key)).map_err(|error| ClientError::Wrong(error.to_string()))?
            }
        };
        let http = HttpClient::builder()
            // Whoever runs it has named the address, and it is their own machine.
            .egress(Egress::unrestricted())
            .connect_timeout(CONNECT_TIMEOUT)
            .response_bytes_max(ANSWER_BYTES_MAX)
            .build()
            .map_err(|error| ClientError::Wrong(error.to_string()))?;
        Ok(Client { http, base: base.to_owned(), auth, timeout })
    }

    /// The same client, for answers that take longer.
    #[must_use]
    pub fn waiting(&self, timeout: Duration) -> Self {
        Client { timeout, ..self.clone() }
    }

    /// Where the hub is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.base
    }

    /// Asks, and reads the whole answer.
    pub async fn ask(&self, ask: &Ask) -> Result<Answer, ClientError> {
        let request = self.request(ask).map_err(|error| ClientError::Wrong(error.to_string()))?;
        let guard = self.guard(ask.patient)?;
        let sent = if ask.patient {
            self.http.send(&guard, &request).await
        } else {
            self.http.attempt(&guard, &request).await
        };
        let answer = sent.map_err(|error| {
            let no = if error.kind() == Kind::TimedOut {
                format!("no answer within {:?}", self.timeout)
            } else {
                error.last().map_or_else(|| error.to_string(), ToString::to_string)
            };
            ClientError::NoAnswer(no)
        })?;
        let header =
            |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        Ok(Answer {
            status: answer.status().as_u16(),
            location: header("location"),
            text: String::from_utf8_lossy(answer.body()).into_owned(),
        })
    }

    /// Asks for something that may be larger than memory. The time is for its beginning, and then for each piece.
    pub async fn open(&self, ask: &Ask) -> Result<Opened, ClientError> {
        let wrong = |error: &dyn fmt::Display| ClientError::Wrong(error.to_string());
        let request = self.request(ask).map_err(|error| wrong(&error))?.response_bytes_max(u64::MAX);
        let guard =
            Guard::builder("hub").no_call_timeout().no_retry().build().map_err(|error| wrong(&error))?;
        let opened = tokio::time::timeout(self.timeout, self.http.open(&guard, &request)).await;
        let opened = opened.map_err(|_| late(self.timeout))?.map_err(|error| {
            ClientError::NoAnswer(error.last().map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let status = opened.status().as_u16();
        let location = opened.headers().get("location").and_then(|value| value.to_str().ok());
        let location = location.map(ToOwned::to_owned);
        let mut pieces = Pieces { body: opened.into_body(), timeout: self.timeout };
        if (200..300).contains(&status) {
            return Ok(Opened::Body(pieces));
        }
        let mut text = Vec::new();
        while let Some(piece) = pieces.next().await? {
            text.extend_from_slice(&piece);
            if text.len() > REFUSAL_BYTES_MAX {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Opened::Refused(Answer { status, text, location }))
    }

    fn request(&self, ask: &Ask) -> Result<Request, seawall_http::BadRequest> {
        let method = Method::from_bytes(ask.method.as_bytes()).unwrap_or(Method::GET);
        // How long we wait is our own affair: a hub that hears of it could only give up earlier.
        let url = format!("{}{}", self.base, ask.path);
        let mut request = Request::new(method, url)?.unannounced().auth(self.auth.clone());
        if ask.patient {
            request = request.safety(Safety::Idempotent);
        }
        for (name, value) in &ask.headers {
            request = request.header(name, value)?;
        }
        Ok(match &ask.body {
            Some(body) => request.header("content-type", "application/json")?.body(body.clone()),
            None => request,
        })
    }

    fn guard(&self, patient: bool) -> Result<Guard, ClientError> {
        let guard = Guard::builder("hub").attempt_timeout(self.timeout).no_call_timeout();
        let guard = if patient {
            let busy = "503,507".parse().map_err(|_| ClientError::Wrong("no set of statuses".into()))?;
            let waits = Backoff::exponential(millis(250)).throttled_base(millis(500)).cap(WAIT_MAX);
            // One caller with one request at a time can't multiply an outage.
            guard.retry(Retry::max_attempts(ATTEMPTS).backoff(waits).on_status(busy).no_budget())
        } else {
            guard.no_retry()
        };
        guard.build().map_err(|error| ClientError::Wrong(error.to_string()))
    }
}

/// One part of a path, whatever stands in it.
#[must_use]
pub fn path_part(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// A point in time as the hub reads it: `2026-11-15T12:00:00.250Z`.
#[must_use]
pub fn moment(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a point in time is written as the hub reads it.
    #[test]
    fn hub_10_a_moment_is_written_as_the_hub_reads_it() {
        assert_eq!(moment(UNIX_EPOCH + millis(1_794_744_000_250)), "2026-11-15T12:00:00.250Z");
    }

    /// HUB-10: a name with anything in it is one part of a path.
    #[test]
    fn hub_10_a_name_can_not_leave_its_place_in_a_path() {
        assert_eq!(path_part("billing-2"), "billing-2");
        assert_eq!(path_part("../a b?c#d%e:f/é"), "..%2Fa%20b%3Fc%23d%25e%3Af%2F%C3%A9");
    }

    /// HUB-10: an address that is none is refused before anything is sent.
    #[test]
    fn hub_10_an_address_is_checked_first() {
        let timeout = secs(1);
        for wrong in ["", "127.0.0.1:8480", "ftp://hub", "http://", "http://hub?x=1", "http://u:p@hub"] {
            assert!(matches!(Client::new(wrong, None, timeout), Err(ClientError::Wrong(_))), "{wrong}");
        }
        let client = Client::new("https://example.org/seawall/", Some("a-key"), timeout).unwrap();
        assert_eq!(client.address(), "https://example.org/seawall");
        assert!(Client::new("http://hub", Some("a\nkey"), timeout).is_err());
        assert!(!format!("{client:?}").contains("a-key"));
    }
}
