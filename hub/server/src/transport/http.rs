//! Deliveries over HTTP.

use seawall::{Attempt, Fault};
use seawall_http::{Auth, Bytes, HttpClient, HttpError, Method, Request as HttpRequest, Secret};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::transport::{Answer, NoAnswer, Transport};
use seawall_hub_core::render::Request;

use crate::seal::Keyring;

/// So much of an answer is kept as evidence.
pub const ANSWER_KEPT: usize = 4 * 1024;

/// Sends deliveries over HTTP, through one client with its egress guard.
#[derive(Clone, Debug)]
pub struct Http {
    client: HttpClient,
    keyring: Keyring,
}

impl Http {
    /// By this client, with secrets that this keyring opens.
    #[must_use]
    pub fn new(client: HttpClient, keyring: Keyring) -> Self {
        Http { client, keyring }
    }
}

impl Transport for Http {
    async fn send(
        &self,
        service: &Service,
        request: &Request,
        delivery: DeliveryId,
        number: u32,
        attempt: Attempt,
    ) -> Result<Answer, NoAnswer> {
        let request = outgoing(service, request, delivery, number);
        let request = request.and_then(|request| self.with_auth(service, request));
        let request =
            request.map_err(|error| NoAnswer { fault: Fault::business(), error, impossible: true })?;
        match self.client.exchange(&request, attempt).await {
            Ok(response) => {
                let kept = response.body().len().min(ANSWER_KEPT);
                Ok(Answer {
                    status: response.status().as_u16(),
                    fault: response.fault(),
                    body: response.body()[..kept].to_vec(),
                })
            }
            Err(error) => Err(no_answer(&error)),
        }
    }
}

impl Http {
    /// Applied last, so that what is kept of a request has no secret in it.
    fn with_auth(&self, service: &Service, request: HttpRequest) -> Result<HttpRequest, String> {
        let Some(sealed) = &service.auth else { return Ok(request) };
        let secret = self.keyring.unseal(sealed, service.name.as_str());
        let secret = secret.and_then(|secret| String::from_utf8(secret).ok());
        let secret = secret.ok_or("its secret can't be opened; was `secret.key` changed?")?;
        let auth = Auth::bearer(&Secret::new(secret)).map_err(|error| error.to_string())?;
        Ok(request.auth(auth))
    }
}

fn no_answer(error: &HttpError) -> NoAnswer {
    // A target that the egress rules forbid stays forbidden; the reason is for the operator.
    let refusal = error.refusal().map(|refused| format!("{refused}"));
    NoAnswer {
        fault: error.fault(),
        impossible: refusal.is_some(),
        error: refusal.unwrap_or_else(|| error.to_string()),
    }
}

/// The request on the wire: the service's headers, then the rule's, and the delivery's own name, so that a peer can tell a
/// repetition.
fn outgoing(
    service: &Service,
    request: &Request,
    delivery: DeliveryId,
    number: u32,
) -> Result<HttpRequest, String> {
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
    let url = format!("{}{}", service.address.trim_end_matches('/'), request.path);
    let mut out = HttpRequest::new(method, url).map_err(|error| error.to_string())?;
    let own = [
        ("seawall-delivery".to_owned(), delivery.to_string()),
        ("seawall-try".to_owned(), number.to_string()),
    ];
    let overridden = |name: &str| request.headers.iter().any(|(rule, _)| rule.eq_ignore_ascii_case(name));
    let of_service = service.headers.iter().filter(|(name, _)| !overridden(name));
    for (name, value) in of_service.chain(&request.headers).chain(&own) {
        out = out.header(name, value).map_err(|error| error.to_string())?;
    }
    if let Some(body) = &request.body {
        out = out.body(Bytes::copy_from_slice(body));
    }
    Ok(out)
}
