//! How a channel is reached: what is checked, what is sealed, and what is shown of it.
//!
//! Sealed as a whole: the path of a webhook is often all that is secret about it.

use seawall_api::{ChannelSettings, Exposed, HIDDEN, WriteOnly};
use seawall_http::auth::Webhook;
use seawall_http::{Request, Secret, Tls};

/// Where mail goes, and by whom.
pub(super) struct EmailSettings {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: TlsMode,
    pub(super) login: Option<(String, Secret)>,
    pub(super) from: String,
    pub(super) to: Vec<String>,
    /// An authority of one's own, in PEM, that is believed beside the public ones.
    pub(super) ca: Option<String>,
}

/// When TLS begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TlsMode {
    /// After a few words in plain text. If the server does not offer it, nothing is sent.
    StartTls,
    /// With the first byte.
    Implicit,
    /// TLS is never used.
    None,
}

const MODES: [(seawall_api::TlsMode, TlsMode, u16); 3] = [
    (seawall_api::TlsMode::Starttls, TlsMode::StartTls, 587),
    (seawall_api::TlsMode::Implicit, TlsMode::Implicit, 465),
    (seawall_api::TlsMode::None, TlsMode::None, 25),
];

impl TlsMode {
    /// The mode with its usual port; `None` for one of a later version.
    pub(super) fn named(mode: &seawall_api::TlsMode) -> Option<(TlsMode, u16)> {
        MODES.iter().find(|(named, ..)| named == mode).map(|(_, mode, port)| (*mode, *port))
    }
}

/// The port that mail servers have in this mode.
pub(crate) fn usual_port(mode: &seawall_api::TlsMode) -> Option<u16> {
    TlsMode::named(mode).map(|(_, port)| port)
}

/// Everything but what is secret.
pub(crate) fn shown(settings: ChannelSettings<Exposed>) -> ChannelSettings<WriteOnly> {
    let hidden = |secret: Option<Exposed>| secret.map(|_| WriteOnly::Keep);
    match settings {
        ChannelSettings::Log => ChannelSettings::Log,
        ChannelSettings::Webhook { url, secret } => {
            ChannelSettings::Webhook { url: shown_url(&url), secret: hidden(secret) }
        }
        ChannelSettings::Email { host, port, tls, username, password, from, to, ca } => {
            let password = hidden(password);
            ChannelSettings::Email { host, port, tls, username, password, from, to, ca }
        }
    }
}

/// A URL without its path, which is often all that is secret about it.
pub(crate) fn shown_url(url: &str) -> String {
    let mut parts = url.splitn(4, '/');
    let origin: Vec<&str> = parts.by_ref().take(3).collect();
    let rest = parts.next().unwrap_or_default();
    let hidden = if rest.is_empty() { "" } else { HIDDEN };
    format!("{}/{hidden}", origin.join("/"))
}

/// True for a URL as it is shown, with a path that is hidden.
pub(crate) fn is_shortened(url: &str) -> bool {
    url.strip_suffix(HIDDEN).is_some_and(|origin| origin.ends_with('/'))
}

/// Every text that nobody else may see.
pub(super) fn secrets(settings: &ChannelSettings<Exposed>) -> Vec<String> {
    match settings {
        ChannelSettings::Log => Vec::new(),
        ChannelSettings::Webhook { url, secret } => {
            let path = url.splitn(4, '/').nth(3).filter(|path| path.len() > 4).map(ToOwned::to_owned);
            path.into_iter().chain(secret.iter().map(|Exposed(secret)| secret.clone())).collect()
        }
        ChannelSettings::Email { username: Some(name), password: Some(Exposed(password)), .. } => {
            let secret = Secret::new(password.clone());
            vec![password.clone(), super::smtp::plain(name, &secret), super::smtp::coded(password)]
        }
        ChannelSettings::Email { .. } => Vec::new(),
    }
}

/// A URL that a webhook can be sent to, or one as it is shown.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    match is_shortened(url) {
        true => Ok(()),
        false => Request::post(url).map(drop).map_err(|error| error.to_string()),
    }
}

/// A secret that can sign by Standard Webhooks, or what is shown in its place.
pub(crate) fn check_secret(text: &str) -> Result<(), String> {
    match text == HIDDEN {
        true => Ok(()),
        false => Webhook::new([Secret::new(text)]).map(drop).map_err(|error| error.to_string()),
    }
}

pub(crate) fn check_host(text: &str) -> Result<(), String> {
    match text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@')) {
        true => Err("must be a host name or an address, without a port".to_owned()),
        false => Ok(()),
    }
}

/// What can stand in a command of SMTP between angle brackets.
pub(crate) fn check_address(text: &str) -> Result<(), String> {
    let fits = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>()[]\\,;:\"@".contains(&byte))
    };
    match text.len() <= 254 && text.split_once('@').is_some_and(|(name, host)| fits(name) && fits(host)) {
        true => Ok(()),
        false => Err("must be an address such as `duty@example.com`".to_owned()),
    }
}

pub(crate) fn check_certificate(text: &str) -> Result<(), String> {
    Tls::mozilla().root_pem(text.as_bytes()).map(drop).map_err(|error| error.to_string())
}
