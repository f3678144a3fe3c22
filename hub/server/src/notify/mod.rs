//! How messages about incidents get to people: webhooks and mail, through the hub's one client.
//!
//! Every socket is opened by that client, so what the egress rules forbid is forbidden here too. What is said of a try that did
//! not go well has no secret in it, whoever has put it there.

mod end;
mod mail;
pub(crate) mod settings;
mod smtp;
mod webhook;

use seawall_api::{ChannelSettings, Exposed};
use seawall_http::Secret;
use seawall_hub_core::domain::alert::Channel;
use seawall_hub_core::port::notify::{Message, Notifier};

use self::settings::{EmailSettings, TlsMode};
use crate::hub::Server;
use crate::log::Log;
use crate::rotate;
use crate::seal::Keyring;
use crate::transport::HttpTransport;
use crate::transport::scrub::Secrets;

/// The maximum length of an answer that is stored.
const SAID_MAX: usize = 300;

/// Tells people, by the client of the transport. A handle.
#[derive(Clone, Debug)]
pub(crate) struct ChannelNotifier {
    transport: HttpTransport,
    keyring: Keyring,
}

impl ChannelNotifier {
    pub(crate) fn new(transport: HttpTransport, keyring: Keyring) -> Self {
        ChannelNotifier { transport, keyring }
    }
}

/// The settings of a channel, opened.
pub(crate) fn opened(keyring: &Keyring, channel: &Channel) -> Option<ChannelSettings<Exposed>> {
    let bytes = keyring.unseal(&channel.settings, &rotate::channel(&channel.name))?;
    serde_json::from_slice(&bytes).ok()
}

impl Notifier for ChannelNotifier {
    async fn tell(&self, channel: &Channel, message: &Message) -> Result<String, String> {
        const UNREADABLE: &str = "its settings can't be opened; was `secret.key` changed?";
        let settings = opened(&self.keyring, channel).ok_or(UNREADABLE)?;
        let client = self.transport.client();
        let secret = |Exposed(text)| Secret::new(text);
        let told = match settings.clone() {
            ChannelSettings::Log => return Err(UNREADABLE.to_owned()),
            ChannelSettings::Webhook { url, secret: known } => {
                webhook::tell(&client, &url, known.map(secret), message).await
            }
            ChannelSettings::Email { host, port, tls, username, password, from, to, ca } => {
                let (tls, usual) = TlsMode::named(&tls.unwrap_or_default()).ok_or(UNREADABLE)?;
                let (port, login) = (port.unwrap_or(usual), username.zip(password.map(secret)));
                smtp::tell(&client, &EmailSettings { host, port, tls, login, from, to, ca }, message).await
            }
        };
        let clean = |said: String| clean(&said, &settings);
        told.map(clean).map_err(clean)
    }
}

/// In one line, not too long, and without what is secret.
fn clean(said: &str, settings: &ChannelSettings<Exposed>) -> String {
    let secrets = settings::secrets(settings);
    let said = Secrets::new(secrets.iter().map(String::as_str)).hidden_in(said.as_bytes());
    let said = String::from_utf8_lossy(&said);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    said.trim().chars().map(plain).take(SAID_MAX).collect()
}

impl Server {
    /// Watches over everything, and tells people, again and again.
    pub async fn alert(&self) {
        let channels = ChannelNotifier::new(self.transport.clone(), self.keyring.clone());
        let log = || self.log.as_ref().map(Log::counts).unwrap_or_default();
        self.alerts.watch_alerts(&channels, log).await;
    }
}
