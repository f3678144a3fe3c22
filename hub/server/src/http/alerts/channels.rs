//! Channels of alerts.

use seawall_api::{AlertChannel, AlertChannelSpec, AlertChannelTested, ChannelSettings, Exposed, WriteOnly};
use seawall_hub_core::domain::alert::{Channel, LOG};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::service::{ChangeError, ChannelTestResult};

use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::slug;
use crate::http::registry::resource::{ChangeTerms, NamedObject, ReadResult, ResourceInput, find, resource};
use crate::http::registry::services::sealed;
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;
use crate::notify::settings::{is_shortened, shown, shown_url, usual_port};
use crate::notify::{ChannelNotifier, opened};
use crate::rotate;

type ChannelInput = ResourceInput<Channel>;

impl NamedObject for Channel {
    resource!(AlertChannelSpec => AlertChannel, "channel", alerts.channels, alerts.channel);

    fn is_seen_by(&self, caller: &Caller) -> bool {
        caller.sees_all()
    }

    fn spec(&self, hub: &Server) -> Result<AlertChannelSpec, ApiError> {
        let unreadable =
            || ApiError::new("conflict", "its settings can't be decrypted; set all of them with PUT");
        let settings = opened(&hub.keyring, self).ok_or_else(unreadable)?;
        Ok(AlertChannelSpec { name: self.name.as_str().into(), settings: shown(settings) })
    }

    async fn view(&self, hub: &Server) -> AlertChannel {
        AlertChannel {
            name: self.name.as_str().into(),
            version: self.version,
            changed_at: Some(self.changed.to_string().into()),
            settings: opened(&hub.keyring, self).map(shown),
        }
    }

    fn read(cx: &RequestContext, mut input: ChannelInput, before: Option<Self>) -> ReadResult<Self> {
        let before = before.and_then(|channel| opened(&cx.hub.keyring, &channel));
        let secret = checked(before.as_ref(), &mut input);
        let AlertChannelSpec { name, settings } = input.finish()?;
        let name = slug(&name);
        let settings = sealed(&cx.hub, &exposed(settings, before, secret), &rotate::channel(&name))?;
        Ok((Channel { name, version: 0, settings, changed: Millis(0) }, None))
    }

    async fn commit(self, cx: &RequestContext, terms: ChangeTerms) -> Result<Self, ChangeError> {
        cx.hub.alerts.put_channel(cx, self, terms.expected).await
    }

    async fn remove(&self, cx: &RequestContext, terms: ChangeTerms) -> Result<(), ChangeError> {
        cx.hub.alerts.delete_channel(cx, &self.name, terms.expected).await
    }
}

/// The log stands first, and has nothing to set.
pub(crate) async fn list(cx: RequestContext) -> ApiResult<Vec<AlertChannel>> {
    let settings = Some(ChannelSettings::Log);
    let mut all = vec![AlertChannel { name: LOG.into(), version: 0, changed_at: None, settings }];
    for channel in cx.hub.alerts.channels().iter().filter(|channel| channel.is_seen_by(&cx.caller)) {
        all.push(channel.view(&cx.hub).await);
    }
    Ok(ApiReply::new(all))
}

/// Handles `POST …/alertChannels/{name}:test`.
pub(crate) async fn test(cx: RequestContext, target: Target) -> ApiResult<AlertChannelTested> {
    let channel: Channel = find(&cx, &target)?;
    let channels = ChannelNotifier::new(cx.hub.transport.clone(), cx.hub.keyring.clone());
    let tested = cx.hub.alerts.test_channel(&channel.name, &channels).await;
    let ChannelTestResult { message, came, took } = tested.map_err(refused("channel"))?;
    let (sent, said) = (came.is_ok(), came.unwrap_or_else(|error| error));
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Ok(ApiReply::new(AlertChannelTested { message, sent, said, took_ms }))
}

/// Checks what no field says alone, and returns the secret that the channel has from now on.
fn checked(before: Option<&ChannelSettings<Exposed>>, input: &mut ChannelInput) -> Option<Exposed> {
    match &*input.get::<String>("type")? {
        "webhook" => {
            let (known_url, known) = match before {
                Some(ChannelSettings::Webhook { url, secret }) => (Some(shown_url(url)), secret.as_ref()),
                _ => (None, None),
            };
            let url = input.get::<String>("url");
            if url.is_some_and(|url| is_shortened(&url) && known_url.is_none_or(|known| known != url)) {
                input.wrong("url", "must not be the shortened URL; set the whole URL");
            }
            secret(input, "secret", known)
        }
        "email" => {
            let known = match before {
                Some(ChannelSettings::Email { password, .. }) => password.as_ref(),
                _ => None,
            };
            let password = secret(input, "password", known);
            let has_login = input.get::<String>("username").is_some();
            if has_login && password.is_none() && !input.has_problem_with("password") {
                input.wrong("password", "required with a username");
            }
            if has_login && password.is_some() && input.get::<String>("tls").is_some_and(|tls| tls == "none")
            {
                let reason =
                    "must be `starttls` or `implicit` with a password, which is never sent in plain text";
                input.wrong("tls", reason);
            }
            password
        }
        _ => {
            input.wrong("type", "`type` is one of webhook, email; `log` is always there");
            None
        }
    }
}

/// What is omitted stays, what is null goes, and what is shown in its place means the one that is there.
fn secret(input: &mut ChannelInput, field: &str, before: Option<&Exposed>) -> Option<Exposed> {
    if !input.has(field) {
        return before.cloned();
    }
    match input.get::<WriteOnly>(field)? {
        WriteOnly::Set(text) => Some(Exposed(text)),
        WriteOnly::Keep => {
            if before.is_none() {
                input.wrong(field, "must not be the placeholder `…`; no secret is stored");
            }
            before.cloned()
        }
    }
}

/// The settings to seal: those that were written, with the secret, and with the whole URL in place of the one that is shown.
fn exposed(
    settings: ChannelSettings<WriteOnly>,
    before: Option<ChannelSettings<Exposed>>,
    secret: Option<Exposed>,
) -> ChannelSettings<Exposed> {
    match settings {
        ChannelSettings::Log => ChannelSettings::Log,
        ChannelSettings::Webhook { url, secret: _ } => {
            let url = match before {
                Some(ChannelSettings::Webhook { url: known, .. }) if shown_url(&known) == url => known,
                _ => url,
            };
            ChannelSettings::Webhook { url, secret }
        }
        ChannelSettings::Email { host, port, tls, username, password: _, from, to, ca } => {
            let tls = tls.unwrap_or_default();
            ChannelSettings::Email {
                host,
                port: port.or_else(|| usual_port(&tls)),
                tls: Some(tls),
                // A password without a user is of no use.
                password: secret.filter(|_| username.is_some()),
                username,
                from,
                to,
                ca,
            }
        }
    }
}

#[cfg(test)]
mod tests;
