//! Responses judged by their status.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use crate::clock::Clock;
use crate::fault::{Causes, Classify, Code, Fault, StatusSet, Verdict, parse_retry_after};

/// A response with a status and headers, which [`ByStatus`] can judge.
///
/// Implement it for the response of a client that is not known here.
pub trait HttpResponse {
    /// The status.
    fn status(&self) -> StatusCode;

    /// The headers.
    fn headers(&self) -> &HeaderMap;

    /// What the response means, or `None` for a success: as [`Fault::of_response`] says, unless an implementation knows more.
    fn fault(&self) -> Option<Fault> {
        Fault::of_response(self.status(), self.headers(), Clock::system().wall())
    }
}

impl<B> HttpResponse for http::Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

impl Fault {
    /// What a status means, or `None` for a success (1xx to 3xx). As [`of_http`](Fault::of_http).
    #[must_use]
    pub fn of_status(status: StatusCode) -> Option<Self> {
        Fault::of_http(status.as_u16())
    }

    /// What a response with this status and these headers means, or `None` for a success.
    ///
    /// The fault of 429 and 503 carries the wait of `Retry-After`. A date in that header is compared with `now`.
    #[must_use]
    pub fn of_response(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Self> {
        let fault = Fault::of_status(status)?;
        if fault.verdict != Verdict::Throttled {
            return Some(fault);
        }
        let wait = headers.get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?, now));
        Some(wait.map_or(fault, |wait| fault.after(wait)))
    }
}

/// Judges a response by its status and an error by its causes.
///
/// Works for every [`HttpResponse`]: `http::Response`, `reqwest::Response` and those of your own.
///
/// ```
/// use seawall::client::ByStatus;
/// use seawall::{Classify, secs};
///
/// let busy = http::Response::builder().status(503).header("retry-after", "7").body(())?;
/// let fault = ByStatus.classify(&Ok::<_, std::io::Error>(busy)).expect("a fault");
/// assert!(fault.is_transient());
/// assert_eq!(fault.retry_after(), Some(secs(7)));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ByStatus;

impl ByStatus {
    /// Makes these statuses successes. See [`StatusRules::success`].
    #[must_use]
    pub fn success(self, statuses: StatusSet) -> StatusRules {
        StatusRules::new(Causes).success(statuses)
    }

    /// Makes these statuses business faults. See [`StatusRules::business`].
    #[must_use]
    pub fn business(self, statuses: StatusSet) -> StatusRules {
        StatusRules::new(Causes).business(statuses)
    }

    /// Makes these statuses permanent faults. See [`StatusRules::permanent`].
    #[must_use]
    pub fn permanent(self, statuses: StatusSet) -> StatusRules {
        StatusRules::new(Causes).permanent(statuses)
    }

    /// Makes these statuses transient faults. See [`StatusRules::transient`].
    #[must_use]
    pub fn transient(self, statuses: StatusSet) -> StatusRules {
        StatusRules::new(Causes).transient(statuses)
    }

    /// Judges errors by another classifier than their causes: [`Dynamic`](crate::fault::Dynamic) for errors behind a pointer,
    /// or a closure of yours.
    #[must_use]
    pub fn errors_by<C>(self, errors: C) -> StatusRules<C> {
        StatusRules::new(errors)
    }
}

impl<T, E> Classify<T, E> for ByStatus
where
    T: HttpResponse,
    Causes: Classify<T, E>,
{
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        match result {
            Ok(response) => response.fault(),
            Err(_) => Causes.classify(result),
        }
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        <Causes as Classify<T, E>>::source(error)
    }
}

/// [`ByStatus`] with exceptions. The first rule that names a status decides; the table of statuses decides about the others.
///
/// ```
/// use seawall::Classify;
/// use seawall::client::ByStatus;
///
/// // This peer answers 404 for what it does not have, and 409 while another writer holds the record.
/// let rules = ByStatus.success("404".parse()?).transient("409".parse()?);
/// let judge = |status: u16| {
///     let response = http::Response::builder().status(status).body(()).expect("a status");
///     rules.classify(&Ok::<_, std::io::Error>(response))
/// };
/// assert_eq!(judge(404), None);
/// assert!(judge(409).is_some_and(|fault| fault.is_transient()));
/// assert!(judge(410).is_some_and(|fault| !fault.is_transient()));
/// # Ok::<(), seawall::fault::BadStatusSet>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatusRules<C = Causes> {
    /// Shared, because a classifier is cloned for each call of a tower service.
    rules: Arc<Vec<(StatusSet, Meaning)>>,
    errors: C,
}

#[derive(Clone, Copy, Debug)]
enum Meaning {
    Success,
    Business,
    Permanent,
    Transient,
}

impl<C> StatusRules<C> {
    fn new(errors: C) -> Self {
        StatusRules { rules: Arc::default(), errors }
    }

    /// These statuses are successes: not retried, and they heal the circuit.
    #[must_use]
    pub fn success(self, statuses: StatusSet) -> Self {
        self.rule(statuses, Meaning::Success)
    }

    /// The peer understood and said no: not retried, and no mark against the peer.
    #[must_use]
    pub fn business(self, statuses: StatusSet) -> Self {
        self.rule(statuses, Meaning::Business)
    }

    /// These statuses are faults that are not retried. Whether they count against the peer is what the table says.
    #[must_use]
    pub fn permanent(self, statuses: StatusSet) -> Self {
        self.rule(statuses, Meaning::Permanent)
    }

    /// These statuses are faults that may pass: retried, and they count against the peer.
    #[must_use]
    pub fn transient(self, statuses: StatusSet) -> Self {
        self.rule(statuses, Meaning::Transient)
    }

    fn rule(mut self, statuses: StatusSet, meaning: Meaning) -> Self {
        Arc::make_mut(&mut self.rules).push((statuses, meaning));
        self
    }

    fn judge(&self, response: &impl HttpResponse) -> Option<Fault> {
        let status = response.status().as_u16();
        let fault = response.fault();
        let meaning =
            self.rules.iter().find(|(statuses, _)| statuses.contains(status)).map(|(_, meaning)| *meaning);
        let coded = |fault: Fault| fault.code(Code::Http(status));
        match (meaning, fault) {
            (None, fault) => fault,
            (Some(Meaning::Success), _) => None,
            (Some(Meaning::Business), _) => Some(coded(Fault::business())),
            (Some(Meaning::Permanent), fault) => Some(coded(fault.unwrap_or(Fault::business()).permanent())),
            // What is transient already keeps the wait that was asked for.
            (Some(Meaning::Transient), Some(fault)) if fault.is_transient() => Some(fault),
            (Some(Meaning::Transient), _) => Some(coded(Fault::protocol())),
        }
    }
}

impl<T, E, C> Classify<T, E> for StatusRules<C>
where
    T: HttpResponse,
    C: Classify<T, E>,
{
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        match result {
            Ok(response) => self.judge(response),
            Err(_) => self.errors.classify(result),
        }
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        C::source(error)
    }
}

/// A guard's call takes its classifier by value; rules that many calls share are passed by reference.
impl<T, E, C> Classify<T, E> for &StatusRules<C>
where
    T: HttpResponse,
    C: Classify<T, E>,
{
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        (**self).classify(result)
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        C::source(error)
    }
}
