//! Why a request is refused, and why a verifier can't be made.

use std::fmt;

use axum::http::header::HeaderName;

/// A request that is not in order. As text it says the same whatever was wrong, because its caller may be somebody who
/// tries; [`reason`](Refused::reason) is for the operator's log. Neither holds anything of the request itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(Why);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Why {
    Missing(HeaderName),
    Empty(HeaderName),
    Twice(HeaderName),
    NotText(HeaderName),
    Form(HeaderName, &'static str),
    NoTime(HeaderName),
    /// So many seconds away, begun ones counted.
    TooOld(HeaderName, u64),
    TooNew(HeaderName, u64),
    TooMany(HeaderName),
    /// By another secret, or over another body.
    Other(HeaderName),
}

impl Refused {
    /// What was wrong, for who runs the hub.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.0 {
            Why::Missing(header) => format!("header `{header}` is missing"),
            Why::Empty(header) => format!("header `{header}` is empty"),
            Why::Twice(header) => format!("header `{header}` stands more than once"),
            Why::NotText(header) => format!("header `{header}` has characters other than visible ASCII"),
            Why::Form(header, form) => format!("header `{header}` is not written as {form}"),
            Why::NoTime(header) => format!("the time in `{header}` is not in seconds since 1970"),
            Why::TooOld(header, seconds) => {
                format!("the time in `{header}` is {seconds} s ago; 300 are allowed: a replay, or a clock")
            }
            Why::TooNew(header, seconds) => {
                format!("the time in `{header}` is {seconds} s ahead; 300 are allowed: look at the clocks")
            }
            Why::TooMany(header) => format!("header `{header}` has too many signatures"),
            Why::Other(header) if header == "authorization" => {
                format!("the token in `{header}` is none of this source")
            }
            Why::Other(header) => {
                format!("the signature in `{header}` is by another secret, or of another body")
            }
        }
    }
}

impl From<Why> for Refused {
    fn from(why: Why) -> Self {
        Refused(why)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request does not prove that it comes from this source")
    }
}

impl std::error::Error for Refused {}

/// Why there is no verifier. Nothing is checked by less than what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wrong {
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

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Scheme => {
                f.write_str("the scheme is one of bearer, github, hmac, slack, standard-webhooks, stripe")
            }
            Wrong::NoSecret => {
                f.write_str("a source has a secret that is not empty; without one it accepts nothing")
            }
            Wrong::TooManySecrets => f.write_str("a source has at most 16 secrets"),
            Wrong::Secret(why) => write!(f, "the secret can't be used: {why}"),
            Wrong::Header => f.write_str("`header` is the name of the header with the signature"),
            Wrong::Prefix => f.write_str("`prefix` has visible ASCII characters only"),
            Wrong::Encoding => f.write_str("`encoding` is hex or base64"),
            Wrong::NotForThis(setting) => {
                write!(f, "`{setting}` is a setting of the scheme hmac; this scheme has it fixed")
            }
        }
    }
}

impl std::error::Error for Wrong {}
