//! The builder of a connection and its defaults.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use seawall::{Clock, ConfigError};

use super::events::Problems;
use super::{NatsConnection, Opening, Shared};

/// How long a connection to one server may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the server may take to answer a request or to acknowledge a message. JetStream answers within milliseconds; a
/// cluster that elects a leader takes a few seconds.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a silent server is asked whether it is there. A connection is given up when three pings were not answered, because
/// a peer that is gone without a word (a dropped route, a paused machine) would stay silent for ever.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);

/// The pauses between attempts to connect. Each is shortened by up to a half at random, so that many clients do not come back
/// at the same moment.
pub const RECONNECT_PAUSES: [Duration; 6] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Configures a [`NatsConnection`]. [`NatsConnection::builder`] creates it.
#[must_use = "call `build` to get the connection"]
pub struct NatsConnectionBuilder {
    url: String,
    options: ConnectOptions,
    connect_timeout: Duration,
    request_timeout: Duration,
    ping_interval: Duration,
    domain: Option<String>,
    clock: Clock,
}

impl NatsConnectionBuilder {
    pub(super) fn new(url: &str) -> Self {
        NatsConnectionBuilder {
            url: url.to_owned(),
            options: ConnectOptions::new(),
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            ping_interval: PING_INTERVAL,
            domain: None,
            clock: Clock::system(),
        }
    }

    /// Begins with options of your own: credentials that are not in the address, certificates, a name. The time limits, the
    /// pauses and the event callback in them are replaced.
    pub fn options(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how long a connection to one server may take to be made; [`CONNECT_TIMEOUT`] by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the server may take to answer a request; [`REQUEST_TIMEOUT`] by default.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets how often a silent server is asked whether it is there; [`PING_INTERVAL`] by default.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval;
        self
    }

    /// Sets the JetStream domain; that of the server by default.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Makes the connection, which is opened by its first request.
    pub fn build(self) -> Result<NatsConnection, ConfigError> {
        let mut mistakes = Vec::new();
        let addresses = addresses_of(&self.url).unwrap_or_else(|reason| {
            mistakes.push(("url", reason));
            Addresses { servers: Vec::new(), login: None }
        });
        for (setting, value) in [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("ping_interval", self.ping_interval),
        ] {
            if value.is_zero() {
                mistakes.push((setting, "is zero; nothing can be done in no time".to_owned()));
            }
        }
        if self
            .domain
            .as_deref()
            .is_some_and(|domain| domain.is_empty() || domain.contains(['.', ' ', '*', '>']))
        {
            mistakes.push(("domain", "is empty or has a dot, a space or a wildcard in it".to_owned()));
        }
        if !mistakes.is_empty() {
            return Err(ConfigError::new("the connection to NATS", mistakes));
        }
        let problems = Arc::new(Problems::new(self.clock.clone()));
        let heard = problems.clone();
        let options = match addresses.login {
            Some(Login::Password(user, password)) => self.options.user_and_password(user, password),
            Some(Login::Token(token)) => self.options.token(token),
            None => self.options,
        };
        let options = options
            .connection_timeout(self.connect_timeout)
            .request_timeout(Some(self.request_timeout))
            .ping_interval(self.ping_interval)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::ZERO,
                _ => reconnect_pause(attempts - 2),
            })
            .event_callback(move |event| {
                let heard = heard.clone();
                async move { heard.event(&event) }
            });
        Ok(NatsConnection {
            shared: Arc::new(Shared {
                servers: addresses.servers,
                options,
                connect_timeout: self.connect_timeout,
                request_timeout: self.request_timeout,
                domain: self.domain,
                clock: self.clock,
                problems,
                state: Opening::default().into(),
            }),
        })
    }
}

impl fmt::Debug for NatsConnectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address and the options may hold credentials.
        f.debug_struct("NatsConnectionBuilder").finish_non_exhaustive()
    }
}

/// The servers, and the credentials that stand in their addresses.
struct Addresses {
    servers: Vec<ServerAddr>,
    login: Option<Login>,
}

/// What stands before the `@` of an address.
#[derive(Clone, PartialEq, Eq)]
enum Login {
    Password(String, String),
    Token(String),
}

/// Reads addresses with commas between them. The reason of a failure does not repeat the address: it may hold a password.
///
/// The client library ignores credentials in addresses, so they are taken out here.
fn addresses_of(url: &str) -> Result<Addresses, String> {
    let parts: Vec<&str> = url.split(',').map(str::trim).collect();
    let wrong = |number: usize, reason: &str| {
        Err(format!("address {} of {} {reason}; write `nats://host:4222`", number + 1, parts.len()))
    };
    let (mut servers, mut logins) = (Vec::with_capacity(parts.len()), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let (bare, login) = split_login(part);
        logins.extend(login);
        match bare.parse::<ServerAddr>() {
            _ if part.is_empty() => return wrong(number, "is empty"),
            Err(_) => return wrong(number, "can't be read"),
            Ok(server) if !matches!(server.scheme(), "nats" | "tls") => {
                return wrong(number, "has a scheme other than `nats` and `tls`");
            }
            Ok(server) if server.host().is_empty() => return wrong(number, "has no host"),
            Ok(server) => servers.push(server),
        }
    }
    if logins.iter().any(|login| *login != logins[0]) {
        return Err("the addresses have different credentials; servers of one cluster share them".to_owned());
    }
    Ok(Addresses { servers, login: logins.into_iter().next() })
}

/// Takes `user:password@` or `token@` out of an address.
fn split_login(address: &str) -> (String, Option<Login>) {
    let (scheme, rest) = address.split_once("://").unwrap_or(("nats", address));
    let Some((login, host)) = rest.rsplit_once('@') else { return (address.to_owned(), None) };
    let login = match login.split_once(':') {
        Some((user, password)) => Login::Password(decode(user), decode(password)),
        None => Login::Token(decode(login)),
    };
    (format!("{scheme}://{host}"), Some(login))
}

/// Decodes `%40` and the like.
fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The pause after so many failed attempts, between its half and the whole.
pub(crate) fn reconnect_pause(failures: usize) -> Duration {
    let pause = RECONNECT_PAUSES[failures.min(RECONNECT_PAUSES.len() - 1)];
    let chance = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
    pause.mul_f64(0.5 + chance / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-6: an address that can't be read is an error at once, which says which one and never repeats its password.
    #[test]
    fn adp_6_addresses_are_checked_and_never_shown() {
        for wrong in ["", "http://nowhere", "nats://", "nats://ok:1,, nats://ok:2", "nats://u:s3cr3t@[::1"] {
            let error = NatsConnection::new(wrong).unwrap_err().to_string();
            assert!(error.contains("nats://host:4222") && !error.contains("s3cr3t"), "{wrong}: {error}");
        }
        let connection = NatsConnection::new("nats://u:s3cr3t@127.0.0.1:1,localhost:2").unwrap();
        assert_eq!(
            format!("{connection:?}"),
            r#"NatsConnection { servers: ["127.0.0.1:1", "localhost:2"] }"#
        );
        assert_eq!(split_login("nats://a%40b:p%25w@h:1").0, "nats://h:1");
        assert!(split_login("nats://a%40b:p%25w@h:1").1 == Some(Login::Password("a@b".into(), "p%w".into())));
        assert!(split_login("t0k3n@h").1 == Some(Login::Token("t0k3n".into())));
        assert!(NatsConnection::new("nats://a:b@h:1,nats://c:d@h:2").is_err(), "two users");
        let all =
            NatsConnection::builder("").connect_timeout(Duration::ZERO).build().unwrap_err().to_string();
        assert!(all.contains("url") && all.contains("connect_timeout"), "all mistakes at once: {all}");
    }

    #[test]
    fn pauses_grow_and_have_jitter() {
        for (failures, most) in RECONNECT_PAUSES.into_iter().enumerate() {
            let pauses: Vec<Duration> = (0..50).map(|_| reconnect_pause(failures)).collect();
            assert!(pauses.iter().all(|pause| *pause >= most / 2 && *pause <= most), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "no jitter");
        }
        assert!(reconnect_pause(1_000) <= RECONNECT_PAUSES[5]);
    }
}
