//! Names that stand in paths.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a service, a source, a rule: small letters, digits and hyphens, so that it can stand in a path, a metric and
/// a file name without being escaped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slug(Arc<str>);

/// The longest name.
pub const SLUG_MAX: usize = 63;

impl Slug {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, BadSlug> {
        let wrong = |reason| Err(BadSlug { name: name.chars().take(SLUG_MAX + 1).collect(), reason });
        if name.is_empty() {
            return wrong("it is empty");
        }
        if name.len() > SLUG_MAX {
            return wrong("it is longer than 63 characters");
        }
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
            return wrong("it may hold small letters, digits and hyphens only");
        }
        if name.starts_with('-') || name.ends_with('-') {
            return wrong("it may not begin or end with a hyphen");
        }
        Ok(Slug(name.into()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// So that a map of names can be asked with a text. A slug is equal and hashed as its text is.
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

/// A name that can't be one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSlug {
    name: String,
    reason: &'static str,
}

impl fmt::Display for BadSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` can't be a name: {}", self.name.escape_debug(), self.reason)
    }
}

impl std::error::Error for BadSlug {}

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
            ("Billing", "small letters"),
            ("a/b", "small letters"),
            ("a\n", "small letters"),
            ("-a", "hyphen"),
            ("a-", "hyphen"),
            ("ä", "small letters"),
        ] {
            let error = Slug::new(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad:?}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
