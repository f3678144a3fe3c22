//! Text that nobody should see.

use std::fmt;
use std::sync::Arc;

/// A password, a token, a key. It has no `Display`, and its `Debug` shows nothing of it, not even its length.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a secret in.
    pub fn new(secret: impl Into<Arc<str>>) -> Self {
        Secret(secret.into())
    }

    /// The secret itself. To be called where it is used, and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Secret::new(secret)
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Secret::new(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
