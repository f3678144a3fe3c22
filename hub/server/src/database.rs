//! Where the data of a hub is, if it is not in its folder.

use std::fmt;

/// The URL of a database of PostgreSQL. It may hold a password, so it shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Takes any text. Opening the database checks it, so that no refusal is printed together with a password.
    #[must_use]
    pub fn new(text: &str) -> Self {
        DatabaseUrl(text.to_owned())
    }

    /// Returns the URL with its password.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is a password behind the user, or in the query.
    #[must_use]
    pub fn has_password(&self) -> bool {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || self.0.contains("password=")
    }

    /// Puts a password behind the user, unless there is one. Without a user there is nobody whose password it could be.
    #[must_use]
    pub fn with_password(self, password: &str) -> Self {
        if self.has_password() || password.is_empty() {
            return self;
        }
        let parts = self.0.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)));
        let Some((scheme, (user, rest))) = parts else { return self };
        DatabaseUrl(format!("{scheme}://{user}:{}@{rest}", encoded(password)))
    }
}

/// Encodes everything but letters and digits.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-15, SEC-2: a password from elsewhere stands behind the user, whatever is in it; one in the URL stays, and none is shown.
    #[test]
    fn hub_15_a_password_is_added_to_the_url_and_never_shown() {
        for (url, whole) in [
            (
                "postgres://seawall@db:5432/hub?sslmode=require",
                "postgres://seawall:a%3Ab%40c%2F%C3%A9@db:5432/hub?sslmode=require",
            ),
            ("postgres://db/hub", "postgres://db/hub"),
            ("postgres://seawall:one@db/hub", "postgres://seawall:one@db/hub"),
            ("postgres://db/hub?user=x&password=y", "postgres://db/hub?user=x&password=y"),
            ("nonsense", "nonsense"),
        ] {
            let url = DatabaseUrl::new(url).with_password("a:b@c/é");
            assert_eq!(url.reveal(), whole);
            assert_eq!(format!("{url:?}"), "DatabaseUrl");
        }
        assert!(DatabaseUrl::new("postgres://u:p@h/d").has_password());
        assert!(!DatabaseUrl::new("postgres://u@h:5432/d").has_password());
    }
}
