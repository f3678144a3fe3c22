//! The URL of a database.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::OpenError;

/// The time after which a connection that the network has swallowed counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// The longest time that connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Where a database is, and how it is reached.
#[derive(Clone)]
pub(in crate::postgres) struct Address {
    pub(in crate::postgres) config: Config,
    pub(in crate::postgres) tls: TlsSettings,
    /// The address without the password, for messages.
    label: String,
}

/// How much of TLS is asked for, as `sslmode` and its companions say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::postgres) struct TlsSettings {
    pub(in crate::postgres) mode: TlsLevel,
    /// The file with the certificates of authorities.
    pub(in crate::postgres) root: Option<String>,
    /// The files with the certificate of the hub and its key.
    pub(in crate::postgres) certificate: Option<String>,
    pub(in crate::postgres) key: Option<String>,
}

/// What is checked of a server before anything is sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::postgres) enum TlsLevel {
    /// The connection is not encrypted.
    Disable,
    /// TLS if the server has it, and no check of its certificate.
    #[default]
    Prefer,
    /// TLS, and no check of the certificate unless there is a file of authorities.
    Require,
    /// TLS with a certificate of a known authority.
    VerifyAuthority,
    /// The same, and the certificate names the host.
    VerifyFull,
}

impl Address {
    /// Reads a URL, `postgres://user:password@host:5432/database?sslmode=verify-full`. An error never has a part of it that may
    /// be a password.
    pub(in crate::postgres) fn parse(url: &str, application: &str) -> Result<Self, OpenError> {
        let refused = |why: &str| OpenError(format!("the URL of the database can't be used: {why}"));
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(refused("it has to begin with `postgres://`"));
        }
        let (plain, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut tls, mut left) = (TlsSettings::default(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => {
                    tls.mode = TlsLevel::of(value).ok_or_else(|| refused("its `sslmode` is unknown"))?;
                }
                "sslrootcert" => tls.root = Some(decoded(value)),
                "sslcert" => tls.certificate = Some(decoded(value)),
                "sslkey" => tls.key = Some(decoded(value)),
                _ => left.push(pair),
            }
        }
        let rest = if left.is_empty() { plain.to_owned() } else { format!("{plain}?{}", left.join("&")) };
        let mut config: Config = rest.parse().map_err(|error| refused(&harmless(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused("it names no host"));
        }
        config
            .ssl_mode(match tls.mode {
                TlsLevel::Disable => SslMode::Disable,
                TlsLevel::Prefer => SslMode::Prefer,
                _ => SslMode::Require,
            })
            .application_name(application)
            .connect_timeout(CONNECT_MAX)
            .keepalives(true)
            .keepalives_idle(SILENCE_MAX)
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            .tcp_user_timeout(SILENCE_MAX)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let label = label(&config);
        Ok(Address { config, tls, label })
    }
}

impl TlsLevel {
    fn of(value: &str) -> Option<TlsLevel> {
        match value {
            "disable" => Some(TlsLevel::Disable),
            "prefer" => Some(TlsLevel::Prefer),
            "require" => Some(TlsLevel::Require),
            "verify-ca" => Some(TlsLevel::VerifyAuthority),
            "verify-full" => Some(TlsLevel::VerifyFull),
            _ => None,
        }
    }
}

/// Returns the host, the port and the database, as in a URL.
fn label(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let port = config.get_ports().get(index).or(config.get_ports().last()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            }
        })
        .collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// Returns the text of an error of the reader of URLs. One that may quote a part with the password is left out.
fn harmless(error: &tokio_postgres::Error) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    if text.contains(['@', ':', '/']) { "it is not well-formed".to_owned() } else { text }
}

/// Decodes `%2F` and the like.
fn decoded(value: &str) -> String {
    percent_decode_str(value).decode_utf8_lossy().into_owned()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-15: what belongs to TLS is taken from the URL, everything else is the driver's.
    #[test]
    fn hub_15_a_url_says_where_the_database_is_and_how_it_is_checked() {
        let url = "postgresql://seawall:s3cret@db.example:5433/hub?sslmode=verify-full&sslrootcert=%2Fca.pem&connect_timeout=9";
        let address = Address::parse(url, "seawall").unwrap();
        assert_eq!(address.to_string(), "db.example:5433/hub");
        assert_eq!(address.tls.mode, TlsLevel::VerifyFull);
        assert_eq!(address.tls.root.as_deref(), Some("/ca.pem"));
        assert_eq!(address.config.get_password(), Some(&b"s3cret"[..]));
        assert!(!format!("{address:?}").contains("s3cret"));
    }

    /// HUB-15: no error quotes the password, however wrong the URL is.
    #[test]
    fn hub_15_a_wrong_url_is_refused_without_its_password() {
        for url in [
            "mysql://u:s3cret@h/d",
            "host=h password=s3cret",
            "postgres://u:s3cret@h:port/d",
            "postgres://u:s3cret@h/d?sslmode=s3cret",
            "postgres://u:s3cret@h/d?u:s3cret@h=1",
            "postgres://u:s3cret%zz@h/d?a",
            "postgres://",
        ] {
            let error = Address::parse(url, "seawall").unwrap_err().to_string();
            assert!(error.starts_with("the URL of the database can't be used: "), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
