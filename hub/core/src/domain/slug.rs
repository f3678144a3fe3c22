//! Names that stand in paths.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a service, a source or a rule: lower-case letters, digits and hyphens, so that it needs no escaping in a path, a
/// metric or a file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slug(Arc<str>);

/// The maximum length of a name.
pub const SLUG_MAX: usize = 63;

impl Slug {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, SlugError> {
        let wrong = |reason| Err(SlugError { name: name.chars().take(SLUG_MAX + 1).collect(), reason });
        if name.is_empty() {
            return wrong("must not be empty");
        }
        if name.len() > SLUG_MAX {
            return wrong("must have at most 63 characters");
        }
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            return wrong("must consist of lower-case letters, digits and hyphens");
        }
        if name.starts_with('-') || name.ends_with('-') {
            return wrong("must not start or end with a hyphen");
        }
        Ok(Slug(name.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A map of slugs can be searched with a `&str`: a slug equals and hashes like its text.
impl Borrow<str> for Slug {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no slug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlugError {
    name: String,
    reason: &'static str,
}

impl fmt::Display for SlugError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a valid name: {}", self.name.escape_debug(), self.reason)
    }
}

impl std::error::Error for SlugError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-1: names are slugs, and a wrong one says why.
    #[test]
    fn hub_1_names_are_slugs() {
        for good in ["billing", "a", "b-2", "2fa", &"x".repeat(63)] {
            assert_eq!(Slug::new(good).unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("", "empty"),
            (&*"x".repeat(64), "63"),
            ("Billing", "lower-case letters"),
            ("a/b", "lower-case letters"),
            ("a\n", "lower-case letters"),
            ("-a", "hyphen"),
            ("a-", "hyphen"),
            ("ä", "lower-case letters"),
        ] {
            let error = Slug::new(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad:?}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
