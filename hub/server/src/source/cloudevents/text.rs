//! What the texts of attributes may be.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The longest name of a field that is said back.
const SHOWN_MAX: usize = 64;

/// A media type, as far as it matters here.
pub(super) struct MediaType {
    essence: String,
    utf8: bool,
}

impl MediaType {
    /// `type/subtype`, with parameters after it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next()?.to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/')?;
        let is_token = |text: &str| !text.is_empty() && text.bytes().all(is_token);
        let charsets = parts.filter_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_ascii_lowercase())
        });
        let utf8 = charsets.into_iter().all(|charset| charset == "utf-8" || charset == "us-ascii");
        (is_token(kind) && is_token(subtype)).then_some(MediaType { essence, utf8 })
    }

    /// `type/subtype` in small letters.
    pub(super) fn essence(&self) -> &str {
        &self.essence
    }

    /// `*/json` and `*/*+json`.
    pub(super) fn is_json(&self) -> bool {
        self.essence.ends_with("/json") || self.essence.ends_with("+json")
    }

    pub(super) fn is_text(&self) -> bool {
        self.essence.starts_with("text/")
    }

    /// Whether it says nothing else about its characters.
    pub(super) fn is_utf8(&self) -> bool {
        self.utf8
    }
}

/// A token of RFC 9110.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// No control characters, and none that Unicode says are none.
pub(super) fn is_allowed(c: char) -> bool {
    let is_none = matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
    !c.is_control() && !is_none
}

/// The characters of RFC 3986, and two digits after a percent sign. Which of its parts they make is not looked at: nobody
/// follows it.
pub(super) fn is_uri_reference(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => (0..2).all(|_| bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if !fits {
            return false;
        }
    }
    !text.is_empty()
}

/// The same with a scheme in front.
pub(super) fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) && is_uri_reference(text)
}

pub(super) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}

/// A name that came from outside, for a message.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect()
}
