//! Stores that speak S3.

use std::fmt;

use object_store::aws::{AmazonS3, AmazonS3Builder};

use super::http::{StoreConnector, client_options, no_retries};

/// A bucket of Amazon S3, or of a store that speaks S3: MinIO, SeaweedFS, Ceph, R2.
///
/// ```
/// use seawall_files::{ObjectFiles, S3Account};
/// let account = S3Account::new("reports").endpoint("http://127.0.0.1:8333").credentials("key", "secret");
/// let store = ObjectFiles::builder("S3-Store").s3(&account)?;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct S3Account {
    bucket: String,
    region: Option<String>,
    endpoint: Option<String>,
    credentials: Option<(String, String)>,
    virtual_hosts: bool,
    authorities: Vec<String>,
}

impl S3Account {
    /// Chooses a bucket. Without anything else it is one of Amazon's, and region and credentials come from the environment as
    /// with Amazon's own tools: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, a web identity, the role of the machine.
    #[must_use]
    pub fn new(bucket: impl Into<String>) -> Self {
        S3Account {
            bucket: bucket.into(),
            region: None,
            endpoint: None,
            credentials: None,
            virtual_hosts: false,
            authorities: Vec::new(),
        }
    }

    /// Sets the region.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Sets the address of a store that is not Amazon's. Only one that begins with `http://` is spoken to without TLS.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets the access key and the secret.
    #[must_use]
    pub fn credentials(mut self, access_key: impl Into<String>, secret: impl Into<String>) -> Self {
        self.credentials = Some((access_key.into(), secret.into()));
        self
    }

    /// Puts the name of the bucket into the name of the host instead of the path.
    #[must_use]
    pub fn virtual_hosts(mut self) -> Self {
        self.virtual_hosts = true;
        self
    }

    /// Also trusts this authority, in PEM: that of a company, or of a test.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<String>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    pub(super) fn connect(&self) -> Result<AmazonS3, (&'static str, String)> {
        let is_plain = self.endpoint.as_deref().is_some_and(|url| url.starts_with("http://"));
        let mut builder = match &self.credentials {
            Some((key, secret)) => {
                AmazonS3Builder::new().with_access_key_id(key).with_secret_access_key(secret)
            }
            None => AmazonS3Builder::from_env(),
        };
        builder = builder
            .with_bucket_name(&self.bucket)
            .with_http_connector(StoreConnector::new(&self.authorities)?)
            .with_client_options(client_options(is_plain))
            .with_retry(no_retries())
            .with_virtual_hosted_style_request(self.virtual_hosts);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        match &self.region {
            Some(region) => builder = builder.with_region(region),
            // A store that is not Amazon's has no regions, and yet the signature needs one.
            None if self.endpoint.is_some() => builder = builder.with_region("us-east-1"),
            None => {}
        }
        builder.build().map_err(|error| ("account", error.to_string()))
    }
}

impl fmt::Debug for S3Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Account")
            .field("bucket", &self.bucket)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
