//! Azure Blob Storage.

use std::fmt;

use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};

use super::http::{StoreConnector, client_options, no_retries};

/// A container of Azure Blob Storage.
///
/// ```
/// use seawall_files::{AzureAccount, ObjectFiles};
/// let account = AzureAccount::new("mycompany", "reports").access_key("c2VjcmV0");
/// let store = ObjectFiles::builder("Azure-Store").azure(&account)?;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct AzureAccount {
    account: String,
    container: String,
    endpoint: Option<String>,
    access_key: Option<String>,
    authorities: Vec<String>,
}

impl AzureAccount {
    /// Chooses a container of an account. Without an access key the credentials come from the environment: `AZURE_…`, the
    /// identity of the machine.
    #[must_use]
    pub fn new(account: impl Into<String>, container: impl Into<String>) -> Self {
        AzureAccount {
            account: account.into(),
            container: container.into(),
            endpoint: None,
            access_key: None,
            authorities: Vec::new(),
        }
    }

    /// Sets another address of the account, such as that of an emulator. Only one that begins with `http://` is spoken to
    /// without TLS.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets the access key of the account, in Base64 as Azure shows it.
    #[must_use]
    pub fn access_key(mut self, key: impl Into<String>) -> Self {
        self.access_key = Some(key.into());
        self
    }

    /// Also trusts this authority, in PEM: that of a company, or of a test.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<String>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    pub(super) fn connect(&self) -> Result<MicrosoftAzure, (&'static str, String)> {
        let is_plain = self.endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
        let mut builder = match &self.access_key {
            Some(key) => MicrosoftAzureBuilder::new().with_access_key(key),
            None => MicrosoftAzureBuilder::from_env(),
        };
        builder = builder
            .with_account(&self.account)
            .with_container_name(&self.container)
            .with_http_connector(StoreConnector::new(&self.authorities)?)
            .with_client_options(client_options(is_plain))
            .with_retry(no_retries());
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        builder.build().map_err(|error| ("account", error.to_string()))
    }
}

impl fmt::Debug for AzureAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureAccount")
            .field("account", &self.account)
            .field("container", &self.container)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
