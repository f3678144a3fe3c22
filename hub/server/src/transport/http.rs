//! Deliveries over HTTP.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::Uri;
use seawall::fault::Code;
use seawall::{Attempt, Fault};
use seawall_dist::deadletter::{SentRequest, kept_headers};
use seawall_http::{
    Auth, BadRequest, Base, Cause, HttpClient, HttpError, Method, Request as HttpRequest, Response, header,
};
use seawall_hub_core::domain::service::{SealedSecret, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::trace::TraceParent;
use seawall_hub_core::port::transport::{DeliveryHeaders, FullResponse, PeerResponse, SendError, Transport};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::sync::RwLock;

use super::scrub::Secrets;
use crate::credentials;
use crate::responses::{BYTES_USUAL, BodyReadError, ResponseMemory};
use crate::seal::Keyring;
use crate::spans;

/// The number of bytes of a failed response that are stored as evidence.
pub const FAILURE_KEPT: usize = 4 * 1024;
/// The number of bytes of a successful response that are stored.
pub const SUCCESS_KEPT: usize = 256;
/// The maximum number of parsed addresses that are cached.
const BASES_MAX: usize = 4096;

/// Sends deliveries over HTTP, through one client with its egress guard. A handle: clones share everything.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    /// Another one, when other addresses are allowed.
    client: Arc<RwLock<HttpClient>>,
    keyring: Keyring,
    /// What was opened of the services' credentials: opening costs, and a token is asked for once. Known by what was sealed,
    /// because a version may come again when a service was deleted.
    opened: Arc<RwLock<HashMap<Slug, (SealedSecret, OpenedCredentials)>>>,
    /// Addresses of services that are called, looked at once.
    bases: Arc<RwLock<HashMap<String, Arc<Base>>>>,
    responses: ResponseMemory,
}

/// Credentials, ready to be used.
#[derive(Clone, Debug)]
pub(crate) struct OpenedCredentials {
    pub(crate) auth: Auth,
    /// Signed by Standard Webhooks: the message has a name, and it is the same for all its tries.
    names_message: bool,
    /// What must not be kept, should the peer repeat it.
    secrets: Arc<Secrets>,
}

impl HttpTransport {
    /// By this client, with secrets that this keyring opens.
    #[must_use]
    pub fn new(client: HttpClient, keyring: Keyring) -> Self {
        HttpTransport {
            client: Arc::new(RwLock::new(client)),
            keyring,
            opened: Arc::default(),
            bases: Arc::default(),
            responses: ResponseMemory::new(BYTES_USUAL),
        }
    }

    /// Whole answers take their memory from there.
    pub(crate) fn holding(self, responses: ResponseMemory) -> Self {
        HttpTransport { responses, ..self }
    }

    pub(crate) fn client(&self) -> HttpClient {
        self.client.read().clone()
    }

    /// An address that requests go below.
    pub(crate) fn base(&self, address: &str) -> Result<Arc<Base>, BadRequest> {
        if let Some(base) = self.bases.read().get(address) {
            return Ok(base.clone());
        }
        let base = Arc::new(Base::new(address)?);
        let mut bases = self.bases.write();
        if bases.len() >= BASES_MAX {
            // Services that are gone leave theirs.
            bases.clear();
        }
        bases.insert(address.to_owned(), base.clone());
        Ok(base)
    }

    /// Why the egress rules forbid an address, if they do.
    pub(crate) async fn forbids(&self, address: &str) -> Option<String> {
        let uri: Uri = address.parse().ok()?;
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        let error = self.client().check(uri.host()?, port).await.err()?;
        // Not which address it is: whoever may only read should not learn what a name leads to inside.
        let rule = error.refusal()?.rule();
        Some(format!(
            "nothing can be sent to it, and what comes for it will be a dead letter: its address is {rule}, and requests to \
             addresses that are not public need `--allow-egress RANGE` at the start of the hub"
        ))
    }

    /// By this client from now on.
    pub(crate) fn change_client(&self, client: HttpClient) {
        *self.client.write() = client;
    }

    /// How the hub shows who it is to a service, if it does.
    pub(crate) fn auth(&self, service: &Service) -> Result<Option<OpenedCredentials>, String> {
        let Some(sealed) = &service.auth else { return Ok(None) };
        let known = self.opened.read();
        if let Some((of, auth)) = known.get(&service.name)
            && of == sealed
        {
            return Ok(Some(auth.clone()));
        }
        drop(known);
        let opened = self.keyring.unseal(sealed, service.name.as_str());
        let opened = opened.and_then(|bytes| credentials::from_bytes(&bytes));
        let opened = opened.ok_or("its secret can't be opened; was `secret.key` changed?")?;
        let auth = OpenedCredentials {
            auth: credentials::client_auth(&opened)?,
            names_message: matches!(opened, seawall_api::Auth::Webhook { .. }),
            secrets: Arc::new(Secrets::new(credentials::secrets(&opened).iter().map(String::as_str))),
        };
        let entry = (sealed.clone(), auth.clone());
        self.opened.write().insert(service.name.clone(), entry);
        Ok(Some(auth))
    }
}

impl Transport for HttpTransport {
    async fn send(
        &self,
        service: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
        attempt: Attempt,
    ) -> Result<PeerResponse, SendError> {
        #[cfg(seawall_sabotage)]
        super::sabotage::poison(letter);
        let request = self.outgoing(service, request, letter)?.sample_response(FAILURE_KEPT);
        match self.client().single_exchange(&request, attempt).await {
            Ok(response) => {
                let secrets =
                    self.auth(service).ok().flatten().map(|opened| opened.secrets).unwrap_or_default();
                // A delivery has arrived only if the peer says so: a redirect that nobody follows is a refusal.
                let arrived = response.status().is_success();
                let status = response.status().as_u16();
                let refused = || Fault::business().code(Code::Http(status));
                let fault = response.fault().or_else(|| (!arrived).then(refused));
                let most = if fault.is_some() { FAILURE_KEPT } else { SUCCESS_KEPT };
                let headers =
                    response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
                Ok(PeerResponse {
                    code: Some(status),
                    fault,
                    attributes: if fault.is_some() {
                        secrets.hidden_in_headers(kept_headers(headers))
                    } else {
                        Vec::new()
                    },
                    body: kept_body(&response, most, &secrets),
                    sent: fault.map(|_| evidence(&request)),
                })
            }
            Err(error) => Err(no_answer(&error, &request)),
        }
    }

    async fn call(
        &self,
        service: &Service,
        request: &RenderedRequest,
        trace: Option<&str>,
        attempt: Attempt,
    ) -> Result<FullResponse, SendError> {
        let mut request = self.outgoing(service, request, None)?;
        // Whoever calls may have put one there.
        if let Some(trace) = trace.filter(|_| !request.headers().contains_key("traceparent")) {
            request = request.header("traceparent", trace).map_err(|error| impossible(error.to_string()))?;
        }
        let opened = self
            .client()
            .open_attempt(&request, attempt)
            .await
            .map_err(|error| no_answer(&error, &request))?;
        let (status, fault, mut headers) =
            (opened.status().as_u16(), opened.fault(), opened.headers().clone());
        let body = self.responses.read(opened.into_body()).await.map_err(|not_read| match not_read {
            BodyReadError::Broken(error) => no_answer(&error, &request),
            BodyReadError::NoMemory => no_memory(status, &request),
        })?;
        header::strip(&mut headers);
        let owned = |(name, value): (&seawall_http::HeaderName, &seawall_http::HeaderValue)| {
            (name.as_str().to_owned(), value.as_bytes().to_vec())
        };
        Ok(FullResponse { status, fault, headers: headers.iter().map(owned).collect(), body })
    }
}

impl HttpTransport {
    /// The request on the wire, with credentials.
    fn outgoing(
        &self,
        service: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
    ) -> Result<HttpRequest, SendError> {
        let bare = outgoing(service, request, letter).map_err(impossible)?;
        // Credentials are added last, so that what is kept of a request has none in it.
        Ok(match self.auth(service).map_err(impossible)? {
            Some(OpenedCredentials { auth, names_message: true, .. }) => {
                let named = match letter {
                    Some(letter) => bare.header("webhook-id", letter.delivery.to_string()),
                    None => Ok(bare),
                };
                named.map_err(|error| impossible(error.to_string()))?.auth(auth)
            }
            Some(OpenedCredentials { auth, .. }) => bare.auth(auth),
            None => bare,
        })
    }
}

/// The beginning of an answer, without secrets, and why the rest is missing.
fn kept_body(response: &Response, most: usize, secrets: &Secrets) -> Vec<u8> {
    let mut kept = secrets.hidden_in(&response.body()[..response.body().len().min(most)]);
    if let Some(cut) = response.cut() {
        kept.extend_from_slice(format!("\n[cut: {cut}]").as_bytes());
    }
    kept
}

/// It can never be sent.
fn impossible(error: String) -> SendError {
    SendError {
        fault: Fault::business(),
        error,
        impossible: true,
        too_large: false,
        no_memory: false,
        sent: None,
    }
}

fn no_answer(error: &HttpError, request: &HttpRequest) -> SendError {
    SendError {
        fault: error.fault(),
        // A target that the egress rules forbid stays forbidden.
        impossible: error.refusal().is_some(),
        too_large: matches!(error.cause(), Cause::TooLarge { .. }),
        no_memory: false,
        error: explained(error),
        sent: Some(evidence(request)),
    }
}

/// The peer has answered, and there was no memory left to hold that. It is not to blame.
fn no_memory(status: u16, request: &HttpRequest) -> SendError {
    let error = format!("the service has answered {status}, and the hub had no memory left for its response");
    let sent = Some(evidence(request));
    SendError { fault: Fault::business(), error, impossible: false, too_large: false, no_memory: true, sent }
}

/// Why there is no answer, for the operator.
pub(crate) fn explained(error: &HttpError) -> String {
    let refusal = error.refusal().map(|refused| {
        format!("{refused}; requests to private addresses need `--allow-egress` at the start of the hub")
    });
    refusal.unwrap_or_else(|| with_causes(error))
}

/// An error with what led to it, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

/// What may be a key is not kept, wherever somebody has put it.
fn looks_secret(name: &str) -> bool {
    ["auth", "cookie", "key", "pass", "secret", "signature", "token"].iter().any(|part| name.contains(part))
}

fn evidence(request: &HttpRequest) -> SentRequest {
    let evidence = request.evidence();
    let header = |(name, value): (&seawall_http::HeaderName, &seawall_http::HeaderValue)| {
        let shown = if looks_secret(name.as_str()) {
            "…".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        (name.as_str().to_owned(), shown.into_owned())
    };
    SentRequest {
        line: format!("{} {}", evidence.method, evidence.url),
        headers: evidence.headers.iter().map(header).collect(),
    }
}

/// The request on the wire: the service's headers, then the rule's, and the delivery's own name, so that a peer can tell a
/// repetition and a replay.
fn outgoing(
    service: &Service,
    request: &RenderedRequest,
    letter: Option<DeliveryHeaders<'_>>,
) -> Result<HttpRequest, String> {
    let method = Method::from_bytes(request.operation.as_bytes()).map_err(|error| error.to_string())?;
    let url = format!("{}{}", service.address.trim_end_matches('/'), request.target);
    let mut out = HttpRequest::new(method, url).map_err(|error| error.to_string())?;
    let overridden = |name: &str| request.attributes.iter().any(|(rule, _)| rule.eq_ignore_ascii_case(name));
    let of_service = service.headers.iter().filter(|(name, _)| !overridden(name));
    for (name, value) in of_service.chain(&request.attributes) {
        out = out.header(name, value).map_err(|error| error.to_string())?;
    }
    if let Some(letter) = letter {
        let own = |out: HttpRequest, name, value: String| {
            out.header(name, value).map_err(|error| error.to_string())
        };
        out = own(out, "seawall-delivery", letter.delivery.to_string())?;
        out = own(out, "seawall-try", letter.number.to_string())?;
        out = own(out, "seawall-event", letter.event.to_owned())?;
        out = own(out, "seawall-event-time", letter.event_accepted.to_string())?;
        if let Some(trace) = letter.trace {
            out = own(
                out,
                "traceparent",
                TraceParent::within(trace, spans::attempt(letter.delivery, letter.number)).to_string(),
            )?;
        }
        if let Some(dead) = letter.replay_of {
            out = own(out, "seawall-replayed", "true".into())?;
            out = own(out, "seawall-replay-of", dead.to_string())?;
        }
    }
    if let Some(body) = request.body.bytes() {
        out = out.body(body.clone());
    }
    Ok(out)
}
