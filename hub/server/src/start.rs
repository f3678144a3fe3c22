//! How a hub is opened: its options, its client and its keys.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
use seawall_http::egress::{BadCidr, Cidr};
use seawall_http::{Egress, HttpClient};
use seawall_hub_core::port::store::RegistryReads;
use seawall_hub_store::{AnyStore, OpenError, lock_folder};

use crate::database::DatabaseUrl;
use crate::demo::DemoServices;
use crate::log::Log;
use crate::seal::Keyring;

/// How a hub is opened.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Requests go to public addresses, and to these ranges of private ones.
    pub allow_egress: Vec<String>,
    /// The URL of the database of PostgreSQL that holds the data; `None` means SQLite in the folder. It may have a password.
    pub database: Option<DatabaseUrl>,
    /// Whether a new key is made although there are secrets that need the one that is missing.
    pub new_secret_key: bool,
    /// The collector that traces go to, such as `http://127.0.0.1:4318`.
    pub otlp_endpoint: Option<String>,
    /// The sample services, if it is the hub of a demo.
    pub demo: Option<Arc<DemoServices>>,
    /// How many bytes of responses may be in memory at once; the default is `responses::BYTES_USUAL`.
    pub response_memory: Option<u64>,
    /// For how long a client may take nothing of its response; the default is [`WRITE_TIMEOUT_USUAL`].
    pub write_timeout: Option<Duration>,
    /// Who may read the metrics.
    pub metrics: MetricsAccess,
    /// How many files and connections the system lets the process have, if that is known.
    pub open_files: Option<u64>,
    /// The clock of the hub; the default is that of the system.
    pub clock: Clock,
    /// The log whose errors open incidents; `None` if the process writes none.
    pub log: Option<Log>,
}

/// Who may read the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MetricsAccess {
    /// Every key with the permission to read.
    #[default]
    Key,
    /// Everybody who reaches the port.
    Open,
}

/// For how long a client may take nothing of its response, if nobody says otherwise.
pub const WRITE_TIMEOUT_USUAL: Duration = Duration::from_secs(30);

/// Why a hub could not be opened.
#[derive(Debug)]
pub struct StartError(pub(crate) String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// Whether this is a range of addresses, like `10.1.0.0/16`.
pub fn is_range(text: &str) -> Result<(), String> {
    range(text).map(drop)
}

fn range(text: &str) -> Result<Cidr, String> {
    text.parse().map_err(|error: BadCidr| error.to_string())
}

/// A client that reaches public addresses, and these ranges of private ones.
pub(crate) fn client(allowed: &[String]) -> Result<HttpClient, StartError> {
    let mut egress = Egress::default();
    for text in allowed {
        egress = egress.allow(range(text).map_err(StartError)?);
    }
    HttpClient::builder().egress(egress).build().map_err(|error| StartError(error.to_string()))
}

/// Opens the store: the database, or SQLite in the folder. The folder belongs to this process for as long as the file is open.
pub(crate) async fn open_store(
    folder: &Path,
    options: &StartOptions,
) -> Result<(AnyStore, Option<File>), StartError> {
    let open = async {
        let Some(url) = &options.database else {
            // It takes the folder itself.
            return Ok((AnyStore::open_sqlite(folder, &options.clock)?, None));
        };
        let lock = lock_folder(folder)?;
        Ok::<_, OpenError>((AnyStore::open_postgres(url.reveal(), folder, &options.clock).await?, Some(lock)))
    };
    open.await.map_err(|error| StartError(error.to_string()))
}

/// Notes in the database which key has sealed its secrets, so that a hub with another one is refused.
pub(crate) async fn claim_key(store: &AnyStore, keyring: &Keyring) -> Result<(), StartError> {
    let failed = |error: &dyn fmt::Display| StartError(format!("can't use `secret.key`: {error}"));
    let fingerprint = keyring.fingerprint().map_err(|error| failed(&error))?;
    store.put_secret(&fingerprint).await.map_err(|error| failed(&error))
}

/// Refuses a key that is not the one that the database was used with.
async fn check_key(keyring: &Keyring, store: &AnyStore, folder: &Path) -> Result<(), StartError> {
    let failed = |error: &dyn fmt::Display| StartError(format!("can't use `secret.key`: {error}"));
    let Some(noted) = store.secret().await.map_err(|error| failed(&error))? else { return Ok(()) };
    if keyring.fingerprints().map_err(|error| failed(&error))?.iter().any(|own| own[..] == noted[..]) {
        return Ok(());
    }
    Err(StartError(format!(
        "`secret.key` in `{}` is not the one that the database was used with: its secrets can't be opened with it. Bring the right          one, or, if it is lost, start once with `--new-secret-key` and register the secrets of services, sources and \
         channels again",
        folder.display()
    )))
}

/// The keys of this folder. At the first start they are made; later they must not be missing, because a new one would open
/// nothing of what is there, and every delivery to a service with a secret would be given up.
pub(crate) async fn keyring(folder: &Path, store: &AnyStore, anew: bool) -> Result<Keyring, StartError> {
    let failed = |error: &dyn fmt::Display| StartError(format!("can't use `secret.key`: {error}"));
    if let Some(keyring) = Keyring::read(folder).map_err(|error| failed(&error))? {
        if !anew {
            check_key(&keyring, store, folder).await?;
        }
        return Ok(keyring);
    }
    let registered = store.registered().await.map_err(|error| failed(&error))?;
    let needed = registered.services.iter().any(|service| service.auth.is_some())
        || !registered.sources.is_empty()
        || !registered.channels.is_empty();
    if needed && !anew {
        return Err(StartError(format!(
            "`secret.key` is missing in `{}`, and there are secrets that only it opens; bring it back, or, if it is lost, \
             start once with `--new-secret-key` and register the secrets of services, sources and channels again",
            folder.display()
        )));
    }
    Keyring::make(folder).map_err(|error| failed(&error))
}
