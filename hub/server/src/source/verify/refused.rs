//! Why a request is refused, and why a verifier can't be made.

use std::fmt;

use axum::http::header::HeaderName;

/// A request that is not in order. As text it says the same whatever was wrong, because its caller may be somebody who
/// tries; [`reason`](VerifyError::reason) is for the operator's log. Neither holds anything of the request itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError(VerifyFailure);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum VerifyFailure {
    Missing(HeaderName),
    Empty(HeaderName),
    Twice(HeaderName),
    NotText(HeaderName),
    Form(HeaderName, &'static str),
    NoTime(HeaderName),
    /// The timestamp in this header is this many seconds away, rounded up.
    TooOld(HeaderName, u64),
    TooNew(HeaderName, u64),
    TooMany(HeaderName),
    /// By another secret, or over another body.
    Other(HeaderName),
}

impl VerifyError {
    /// What was wrong, for who runs the hub.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.0 {
            VerifyFailure::Missing(header) => format!("header `{header}` is missing"),
            VerifyFailure::Empty(header) => format!("header `{header}` is empty"),
            VerifyFailure::Twice(header) => format!("header `{header}` stands more than once"),
            VerifyFailure::NotText(header) => {
                format!("header `{header}` has characters other than visible ASCII")
            }
            VerifyFailure::Form(header, form) => format!("header `{header}` is not written as {form}"),
            VerifyFailure::NoTime(header) => format!("the time in `{header}` is not in seconds since 1970"),
            VerifyFailure::TooOld(header, seconds) => {
                format!("the time in `{header}` is {seconds} s ago; 300 are allowed: a replay, or a clock")
            }
            VerifyFailure::TooNew(header, seconds) => {
                format!("the time in `{header}` is {seconds} s ahead; 300 are allowed: look at the clocks")
            }
            VerifyFailure::TooMany(header) => format!("header `{header}` has too many signatures"),
            VerifyFailure::Other(header) if header == "authorization" => {
                format!("the token in `{header}` is none of this source")
            }
            VerifyFailure::Other(header) => {
                format!("the signature in `{header}` is by another secret, or of another body")
            }
        }
    }
}

impl From<VerifyFailure> for VerifyError {
    fn from(why: VerifyFailure) -> Self {
        VerifyError(why)
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the verification of the request failed")
    }
}

impl std::error::Error for VerifyError {}

/// Why there is no verifier. Nothing is checked by less than what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SchemeError {
    /// Nobody knows this scheme.
    Scheme,
    /// There is no secret, or an empty one.
    NoSecret,
    /// More secrets than can be needed.
    TooManySecrets,
    /// A secret can't be one of this scheme.
    Secret(&'static str),
    /// This can't be the name of a header.
    Header,
    /// The prefix has characters that no header has.
    Prefix,
    /// Neither `hex` nor `base64`.
    Encoding,
    /// This setting belongs to `hmac`; another scheme has it fixed.
    NotForThis(&'static str),
}

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemeError::Scheme => {
                f.write_str("the scheme is one of bearer, github, hmac, slack, standard-webhooks, stripe")
            }
            SchemeError::NoSecret => f.write_str("must have a secret that is not empty"),
            SchemeError::TooManySecrets => f.write_str("must have at most 16 secrets"),
            SchemeError::Secret(why) => write!(f, "the secret can't be used: {why}"),
            SchemeError::Header => f.write_str("`header` is the name of the header with the signature"),
            SchemeError::Prefix => f.write_str("`prefix` has visible ASCII characters only"),
            SchemeError::Encoding => f.write_str("`encoding` is hex or base64"),
            SchemeError::NotForThis(setting) => {
                write!(f, "`{setting}` is a setting of the scheme hmac; this scheme has it fixed")
            }
        }
    }
}

impl std::error::Error for SchemeError {}
