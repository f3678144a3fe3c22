//! Every scheme against its published examples, against everything that is nearly right, and against anything at all.

mod config;
mod forged;
mod vectors;

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::*;

const NOW: Millis = Millis(1_700_000_000_000);
const STAMP: &str = "1700000000";
const BODY: &[u8] = br#"{"order": 7}"#;
/// Fits every scheme: it is base 64, too.
const SECRET: &str = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0";
const OTHER: &str = "b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=";

fn plain(encoding: Encoding) -> Scheme {
    let header = HeaderName::from_static("x-signature");
    Scheme::Hmac(HmacFormat { header, prefix: "sig:".into(), encoding })
}

fn schemes() -> Vec<Scheme> {
    vec![
        Scheme::Bearer,
        plain(Encoding::Hex),
        plain(Encoding::Base64),
        Scheme::StandardWebhooks,
        Scheme::GitHub,
        Scheme::Stripe,
        Scheme::Slack,
    ]
}

/// Those that sign a time.
fn timed() -> Vec<Scheme> {
    vec![Scheme::StandardWebhooks, Scheme::Stripe, Scheme::Slack]
}

fn proof_header(scheme: &Scheme) -> &'static str {
    match scheme {
        Scheme::Bearer => "authorization",
        Scheme::Hmac(_) => "x-signature",
        Scheme::StandardWebhooks => "webhook-signature",
        Scheme::GitHub => "x-hub-signature-256",
        Scheme::Stripe => "stripe-signature",
        Scheme::Slack => "x-slack-signature",
    }
}

fn code(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a sender writes into the header that proves it.
fn proof(scheme: &Scheme, secret: &str, stamp: &str, body: &[u8]) -> String {
    let (key, at) = (secret.as_bytes(), stamp.as_bytes());
    match scheme {
        Scheme::Bearer => format!("Bearer {secret}"),
        Scheme::Hmac(plain) if plain.encoding == Encoding::Hex => format!("sig:{}", hex(&code(key, &[body]))),
        Scheme::Hmac(_) => format!("sig:{}", STANDARD.encode(code(key, &[body]))),
        Scheme::StandardWebhooks => {
            let key = STANDARD.decode(secret).unwrap();
            format!("v1,{}", STANDARD.encode(code(&key, &[b"msg_1.", at, b".", body])))
        }
        Scheme::GitHub => format!("sha256={}", hex(&code(key, &[body]))),
        Scheme::Stripe => format!("t={stamp},v1={}", hex(&code(key, &[at, b".", body]))),
        Scheme::Slack => format!("v0={}", hex(&code(key, &[b"v0:", at, b":", body]))),
    }
}

fn request_at(scheme: &Scheme, secret: &str, stamp: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put =
        |name: &'static str, value: &str| headers.insert(name, HeaderValue::from_str(value).unwrap());
    match scheme {
        Scheme::StandardWebhooks => {
            put("webhook-id", "msg_1");
            put("webhook-timestamp", stamp);
        }
        Scheme::GitHub => {
            put("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958");
        }
        Scheme::Slack => {
            put("x-slack-request-timestamp", stamp);
        }
        Scheme::Bearer | Scheme::Hmac(_) | Scheme::Stripe => {}
    }
    put(proof_header(scheme), &proof(scheme, secret, stamp, BODY));
    headers
}

fn request(scheme: &Scheme) -> HeaderMap {
    request_at(scheme, SECRET, STAMP)
}

fn verifier(scheme: &Scheme) -> Verifier {
    Verifier::new(scheme.clone(), [SECRET.into()]).unwrap()
}

fn check(scheme: &Scheme, headers: &HeaderMap) -> Result<VerifiedRequest, VerifyError> {
    verifier(scheme).check(&SignedRequest { headers, body: BODY }, NOW)
}

/// The reason why this is refused, with the one text that its caller gets.
fn refusal(scheme: &Scheme, headers: &HeaderMap) -> String {
    let refused = check(scheme, headers).expect_err("it is not in order");
    assert_eq!(refused.to_string(), "the verification of the request failed");
    refused.reason()
}
