//! One attempt: from a request to what is written, and from what comes back to an answer.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{HeaderMap, HeaderValue};
use hyper::body::Incoming;
use seawall::{Attempt, Deadline, Key, Safety, Tick};

use super::HttpClient;
use super::reply::{Reply, reply};
use super::wire::Wire;
use crate::auth::Token;
use crate::body::Outgoing;
use crate::dial::Peer;
use crate::error::{Cause, HttpError};
use crate::fault::wait_asked;
use crate::header::{IDEMPOTENCY_KEY, SEAWALL_ATTEMPT, SEAWALL_DEADLINE};
use crate::request::Request;
use crate::response::{BodyStream, Head, Opened, Response, Timings, time_left};
use crate::sample::{collect, sample};

/// So many idle connections may turn out to be closed, one after the other, before a request that none of them took fails.
const STALE_MAX: u32 = 3;

/// What to do when the peer refuses a token that was at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Resend {
    /// Send the request again at once, with a new one.
    Once,
    /// Leave it to whoever makes the next attempt: one attempt is one send.
    Never,
}

/// On which kind of connection a request is sent.
pub(super) enum Via {
    /// One of the pool's, each with a task of its own.
    Pool,
    /// One that is driven by whoever sends; there it is, once the headers of the answer have come.
    Own(Option<Wire>),
}

impl HttpClient {
    pub(super) async fn whole(
        &self,
        request: &Request,
        attempt: Option<Attempt>,
        resend: Resend,
    ) -> Result<Response, HttpError> {
        let began = self.inner.clock.precise();
        let (mut head, body) = self.headers(request, attempt, resend, began, &mut Via::Pool).await?;
        let (body, cut) = match request.sample {
            None => (collect(body, self.limit(request)).await?, None),
            Some(bytes) => {
                sample(body, bytes, time_left(attempt.and_then(|attempt| attempt.deadline()))).await
            }
        };
        head.timings.total = self.inner.clock.precise().since(began);
        Ok(Response { head, body, cut })
    }

    /// Without a guard, for whoever bounds the time otherwise.
    pub(crate) async fn exchange_once(&self, request: &Request) -> Result<Response, HttpError> {
        self.whole(request, None, Resend::Never).await
    }

    pub(super) async fn opened(&self, request: &Request, attempt: Attempt) -> Result<Opened, HttpError> {
        let began = self.inner.clock.precise();
        let (head, body) = self.headers(request, Some(attempt), Resend::Once, began, &mut Via::Pool).await?;
        let left = time_left(attempt.deadline());
        Ok(Opened { head, body: BodyStream::new(body, self.limit(request), left) })
    }

    fn limit(&self, request: &Request) -> u64 {
        request.limit.unwrap_or(self.inner.response_bytes_max)
    }

    /// Sends the request and waits for the headers of the answer.
    pub(super) async fn headers(
        &self,
        request: &Request,
        attempt: Option<Attempt>,
        resend: Resend,
        began: Tick,
        via: &mut Via,
    ) -> Result<(Head, Incoming), HttpError> {
        let Some(tokens) = request.auth.tokens() else {
            return self.write(request, attempt, None, began, via).await;
        };
        let (token, at_hand) = tokens.token(self).await?;
        let (mut head, body) = self.write(request, attempt, Some(&token), began, via).await?;
        if head.status != http::StatusCode::UNAUTHORIZED || !at_hand {
            return Ok((head, body));
        }
        tokens.refused(&token);
        if resend == Resend::Never || !request.is_replayable() {
            head.stale_credentials = true;
            return Ok((head, body));
        }
        // Not served, by its own word. The connection goes with the answer that nobody reads.
        drop(body);
        let (token, _) = tokens.token(self).await?;
        let (mut head, body) = self.write(request, attempt, Some(&token), began, via).await?;
        head.timings.sends = 2;
        Ok((head, body))
    }

    async fn write(
        &self,
        request: &Request,
        attempt: Option<Attempt>,
        token: Option<&Token>,
        began: Tick,
        via: &mut Via,
    ) -> Result<(Head, Incoming), HttpError> {
        let mut stale = 0;
        let answer = loop {
            let written = self.wire(request, attempt, token)?;
            let replied = match via {
                Via::Pool => reply(&self.inner.pool, written).await,
                Via::Own(place) => {
                    let mut wire = self.inner.wires.take(&request.uri, &self.inner.dialer).await?;
                    let replied = wire.send(written).await;
                    *place = Some(wire);
                    replied
                }
            };
            match replied {
                Reply::Answer(answer) => break answer,
                Reply::Stale(_) if stale < STALE_MAX && request.is_replayable() => stale += 1,
                Reply::Stale(error) | Reply::Failed(error) => return Err(error),
            }
        };
        let first_byte = self.inner.clock.precise().since(began);
        let (mut parts, body) = answer.into_parts();
        if parts.status.is_informational() {
            return Err(Cause::Switched.into());
        }
        let peer = parts.extensions.remove::<Peer>();
        let connect = peer.as_ref().and_then(Peer::took);
        let head = Head {
            status: parts.status,
            wait: wait_asked(parts.status, &parts.headers, &self.inner.clock),
            headers: parts.headers,
            peer: peer.map(|peer| peer.address),
            timings: Timings { connect, first_byte, total: first_byte, sends: 1 },
            only_success: request.only_success,
            attempt: attempt.map_or(1, |attempt| attempt.number()),
            stale_credentials: false,
        };
        Ok((head, body))
    }

    /// What is written. Credentials come last.
    fn wire(
        &self,
        request: &Request,
        attempt: Option<Attempt>,
        token: Option<&Token>,
    ) -> Result<http::Request<Outgoing>, HttpError> {
        let mut wire = http::Request::new(request.body.outgoing()?);
        *wire.method_mut() = request.method.clone();
        *wire.uri_mut() = request.uri.clone();
        let mut headers = request.headers.clone();
        if request.announced {
            self.announce(&mut headers, attempt);
        }
        if let (Some(tell), Some(attempt)) = (&request.observer, attempt) {
            tell.add_headers(attempt, &mut headers);
        }
        if let Some(attempt) = attempt
            && request.safety == Safety::Keyed
        {
            headers.entry(&IDEMPOTENCY_KEY).or_insert_with(|| key(attempt.key()));
        }
        // Without a guard there is no call to name; then a message has an id only if it was given one.
        let id = || attempt.map_or(HeaderValue::from_static("none"), |attempt| key(attempt.key()));
        request.auth.apply(&mut headers, request, token, id, || self.inner.clock.wall())?;
        *wire.headers_mut() = headers;
        Ok(wire)
    }

    /// Tells the peer how much time there is and how deep in retries this is.
    fn announce(&self, headers: &mut HeaderMap, attempt: Option<Attempt>) {
        // In a stack of layers nobody tells us of the attempt, but its deadline stands around us.
        let deadline = attempt.map_or_else(Deadline::current, |attempt| attempt.deadline());
        if let Some(left) = time_left(deadline) {
            headers.insert(&SEAWALL_DEADLINE, digits(millis(left)));
        }
        if let Some(attempt) = attempt {
            let depth = match attempt.depth() {
                0 => HeaderValue::from_static("0"),
                depth => HeaderValue::from(depth),
            };
            headers.insert(&SEAWALL_ATTEMPT, depth);
        }
    }
}

/// As a header's value has it, in one piece of memory: the conversion that there is takes two.
fn digits(mut number: u64) -> HeaderValue {
    let mut text = [b'0'; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] += (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    HeaderValue::from_bytes(&text[start..]).expect("digits may stand in a header")
}

fn millis(left: Duration) -> u64 {
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

fn key(key: Key) -> HeaderValue {
    let text: Cow<'_, str> = key.to_string().into();
    HeaderValue::from_str(&text).expect("hexadecimal digits may stand in a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_with_its_digits() {
        for number in [0, 7, 10, 1999, u64::MAX] {
            assert_eq!(digits(number), HeaderValue::from(number));
        }
    }
}
