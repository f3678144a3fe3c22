//! How a channel is reached: what people write, what is kept, and what is shown of it.
//!
//! Kept as JSON, sealed as a whole: the path of a webhook is often all that is secret about it.

use seawall_api::HIDDEN;
use seawall_http::auth::Webhook;
use seawall_http::{Request, Secret, Tls};
use serde_json::{Value, json};

use crate::http::fields::Fields;

/// The maximum number of recipients of a mail.
const TO_MAX: usize = 50;

/// How a channel is reached.
#[derive(Clone)]
pub(crate) enum ChannelSettings {
    /// A request for each message.
    Webhook(WebhookSettings),
    /// A mail for each message.
    Email(EmailSettings),
}

/// Where a webhook goes.
#[derive(Clone)]
pub(crate) struct WebhookSettings {
    pub(super) url: String,
    /// Signs it by Standard Webhooks.
    pub(super) secret: Option<Secret>,
}

/// Where mail goes, and by whom.
#[derive(Clone)]
pub(crate) struct EmailSettings {
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

const MODES: [(&str, TlsMode, u16); 3] =
    [("starttls", TlsMode::StartTls, 587), ("implicit", TlsMode::Implicit, 465), ("none", TlsMode::None, 25)];

/// The kinds of channels.
const TYPES: &str = "`type` is one of webhook, email; `log` is always there";
const HOOK: &str = "name, type, url, secret";
const EMAIL: &str = "name, type, host, port, tls, username, password, from, to, ca";

impl ChannelSettings {
    /// As somebody has written them, over those before: what is secret and not named stays, and so does what stands for it. The
    /// fields that there are, too.
    pub(crate) fn read(
        fields: &mut Fields,
        before: Option<&ChannelSettings>,
    ) -> (Option<Self>, &'static str) {
        match &*fields.needed("type") {
            "webhook" => {
                let before = before.and_then(|before| match before {
                    ChannelSettings::Webhook(hook) => Some(hook),
                    ChannelSettings::Email(_) => None,
                });
                (hook(fields, before).map(ChannelSettings::Webhook), HOOK)
            }
            "email" => {
                let before = before.and_then(|before| match before {
                    ChannelSettings::Email(email) => Some(email),
                    ChannelSettings::Webhook(_) => None,
                });
                (email(fields, before).map(ChannelSettings::Email), EMAIL)
            }
            "" => {
                fields.forget();
                (None, "type")
            }
            _ => {
                fields.wrong("type", TYPES);
                // What else is wrong can't be known.
                fields.forget();
                (None, "type")
            }
        }
    }

    /// What may be shown: everything but what is secret.
    pub(crate) fn shown(&self) -> Value {
        match self {
            ChannelSettings::Webhook(hook) => json!({
                "type": "webhook", "url": hook.shown_url(), "secret": hook.secret.as_ref().map(|_| HIDDEN),
            }),
            ChannelSettings::Email(email) => {
                let mut all = email.whole();
                all["password"] = json!(email.login.as_ref().map(|_| HIDDEN));
                all
            }
        }
    }

    /// With what is secret, to be sealed.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let whole = match self {
            ChannelSettings::Webhook(hook) => {
                json!({"type": "webhook", "url": hook.url, "secret": hook.secret.as_ref().map(Secret::expose)})
            }
            ChannelSettings::Email(email) => email.whole(),
        };
        whole.to_string().into_bytes()
    }

    /// Back from what was sealed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(serde_json::from_slice(bytes).ok()?);
        Self::read(&mut fields, None).0
    }

    /// Every text that nobody else may see.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            ChannelSettings::Webhook(hook) => {
                let path =
                    hook.url.splitn(4, '/').nth(3).filter(|path| path.len() > 4).map(ToOwned::to_owned);
                path.into_iter()
                    .chain(hook.secret.as_ref().map(|secret| secret.expose().to_owned()))
                    .collect()
            }
            ChannelSettings::Email(email) => email.secrets(),
        }
    }
}

impl WebhookSettings {
    /// Without its path: that is often all that is secret about it.
    fn shown_url(&self) -> String {
        let mut parts = self.url.splitn(4, '/');
        let origin: Vec<&str> = parts.by_ref().take(3).collect();
        let rest = parts.next().unwrap_or_default();
        let hidden = if rest.is_empty() { "" } else { HIDDEN };
        format!("{}/{hidden}", origin.join("/"))
    }
}

fn hook(fields: &mut Fields, before: Option<&WebhookSettings>) -> Option<WebhookSettings> {
    let mut url = fields.needed("url");
    if let Some(before) = before.filter(|before| url == before.shown_url()) {
        url.clone_from(&before.url);
    }
    if !url.is_empty() {
        if url.ends_with(&format!("/{HIDDEN}")) {
            fields.wrong("url", "must not be the shortened URL; set the whole URL");
        } else if let Err(error) = Request::post(&url) {
            fields.wrong("url", error.to_string());
        }
    }
    let secret = secret(fields, "secret", before.and_then(|before| before.secret.clone()));
    if let Some(Err(error)) = secret.clone().map(|secret| Webhook::new([secret])) {
        fields.wrong("secret", error.to_string());
    }
    (!fields.has_problems()).then_some(WebhookSettings { url, secret })
}

fn email(fields: &mut Fields, before: Option<&EmailSettings>) -> Option<EmailSettings> {
    let host = fields.needed("host");
    if host.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@')) {
        fields.wrong("host", "must be a host name or an address, without a port");
    }
    let mode = fields.text("tls").unwrap_or_else(|| "starttls".to_owned());
    let Some((_, tls, usual)) = MODES.iter().find(|(word, ..)| *word == mode).copied() else {
        fields.wrong("tls", "must be `starttls`, `implicit` or `none`");
        return None;
    };
    let port = fields.number("port", 1, 65_535).and_then(|port| u16::try_from(port).ok()).unwrap_or(usual);
    let username = fields.text("username");
    let known = before.and_then(|before| before.login.as_ref());
    let password = secret(fields, "password", known.map(|(_, password)| password.clone()));
    let login = match (username, password) {
        (Some(username), Some(password)) => Some((username, password)),
        // Who takes the name away takes the password with it.
        (None, _) => None,
        (Some(_), None) => {
            fields.wrong("password", "required with a username");
            None
        }
    };
    if login.is_some() && tls == TlsMode::None {
        fields.wrong(
            "tls",
            "must be `starttls` or `implicit` with a password, which is never sent in plain text",
        );
    }
    let (from, to) = (fields.needed("from"), fields.texts("to"));
    if !from.is_empty() && !is_address(&from) {
        fields.wrong("from", "must be one address such as `hub@example.com`");
    }
    if to.is_empty() || to.len() > TO_MAX || !to.iter().all(|to| is_address(to)) {
        fields.wrong("to", format!("must be a list of 1 to {TO_MAX} addresses such as `duty@example.com`"));
    }
    let ca = fields.text("ca");
    if let Some(Err(error)) = ca.as_ref().map(|ca| Tls::mozilla().root_pem(ca.as_bytes())) {
        fields.wrong("ca", error.to_string());
    }
    (!fields.has_problems()).then_some(EmailSettings { host, port, tls, login, from, to, ca })
}

/// What is not named stays, what is null goes, and what is shown in its place means the one that is there.
fn secret(fields: &mut Fields, field: &str, before: Option<Secret>) -> Option<Secret> {
    if !fields.has(field) {
        return before;
    }
    match fields.text(field) {
        Some(text) if text == HIDDEN && before.is_some() => before,
        Some(text) if text == HIDDEN => {
            fields.wrong(field, "must not be the placeholder `…`; no secret is stored");
            None
        }
        Some(text) if text.is_empty() => {
            fields.wrong(field, "must not be empty; null removes it");
            None
        }
        text => text.map(Secret::new),
    }
}

/// What can stand in a command of SMTP between angle brackets.
fn is_address(text: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>()[]\\,;:\"@".contains(&byte))
    };
    text.len() <= 254 && text.split_once('@').is_some_and(|(name, host)| fits(name) && fits(host))
}

impl EmailSettings {
    fn whole(&self) -> Value {
        let tls = MODES.iter().find(|(_, mode, _)| *mode == self.tls).map_or("", |(word, ..)| *word);
        json!({
            "type": "email", "host": self.host, "port": self.port, "tls": tls,
            "username": self.login.as_ref().map(|(name, _)| name),
            "password": self.login.as_ref().map(|(_, password)| password.expose()),
            "from": self.from, "to": self.to, "ca": self.ca,
        })
    }

    fn secrets(&self) -> Vec<String> {
        let Some((name, password)) = &self.login else { return Vec::new() };
        vec![
            password.expose().to_owned(),
            super::smtp::plain(name, password),
            super::smtp::coded(password.expose()),
        ]
    }
}

impl std::fmt::Debug for ChannelSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ChannelSettings::Webhook(_) => "Webhook",
            ChannelSettings::Email(_) => "Email",
        })
    }
}
