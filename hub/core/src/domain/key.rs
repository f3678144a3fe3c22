//! Who may do what.

use std::fmt;

use super::slug::Slug;
use super::time::Millis;

/// An API key as it is stored, without the key itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The unique name of the key.
    pub name: Slug,
    /// The hash of the key. A key has 256 random bits, so a fast hash does not reveal it.
    pub hash: [u8; 32],
    /// The hash of the previous key and until when it is valid, while the key is being rotated.
    pub former: Option<([u8; 32], Millis)>,
    pub scopes: Scopes,
    /// The services that it may be used for; `None` means all.
    pub services: Option<Vec<Slug>>,
    /// The sources that it may send events for; `None` means all.
    pub sources: Option<Vec<String>>,
    /// When the key was created.
    pub made: Millis,
    /// When the key expires; `None` means never.
    pub expires: Option<Millis>,
    /// When the key was revoked; `None` if it was not.
    pub revoked: Option<Millis>,
}

impl Key {
    /// Whether this hash is valid at this time.
    #[must_use]
    pub fn opens(&self, hash: &[u8; 32], now: Millis) -> bool {
        let good = self.revoked.is_none() && self.expires.is_none_or(|expires| now < expires);
        let former = self.former.is_some_and(|(former, until)| former == *hash && now < until);
        good && (self.hash == *hash || former)
    }

    /// Whether the key may be used for this service.
    #[must_use]
    pub fn sees(&self, service: &Slug) -> bool {
        self.services.as_ref().is_none_or(|services| services.contains(service))
    }

    /// Whether the key may send events for this source.
    #[must_use]
    pub fn may_send_from(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.iter().any(|known| known == source))
    }
}

crate::words! {
    /// A permission of an API key.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Scope {
        /// Permission to send events.
        Ingest = "ingest",
        /// Permission to call services through the gateway.
        Call = "call",
        /// Permission to read everything.
        Read = "read",
        /// Permission to read, pause, replay and change circuits.
        Operate = "operate",
        /// Permission for everything, including the registry and keys.
        Admin = "admin",
    }
}

/// A set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether the set includes this permission. `Admin` includes all, `Operate` includes `Read`.
    #[must_use]
    pub fn allow(self, scope: Scope) -> bool {
        let has = |scope: Scope| self.0 & (1 << scope as u8) != 0;
        has(scope) || has(Scope::Admin) || (scope == Scope::Read && has(Scope::Operate))
    }

    /// Lists the permissions as they were given.
    pub fn named(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & (1 << *scope as u8) != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Scopes(scopes.into_iter().fold(0, |all, scope| all | (1 << scope as u8)))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.named()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-1: a scope allows what it says; `admin` allows everything, `operate` to look.
    #[test]
    fn sec_1_scopes_allow_what_they_say() {
        let allowed = |named: &[Scope]| -> Vec<&str> {
            let scopes: Scopes = named.iter().copied().collect();
            Scope::ALL.into_iter().filter(|scope| scopes.allow(*scope)).map(Scope::word).collect()
        };
        assert_eq!(allowed(&[]), [] as [&str; 0]);
        assert_eq!(allowed(&[Scope::Ingest]), ["ingest"]);
        assert_eq!(allowed(&[Scope::Call, Scope::Read]), ["call", "read"]);
        assert_eq!(allowed(&[Scope::Operate]), ["read", "operate"]);
        assert_eq!(allowed(&[Scope::Admin]), ["ingest", "call", "read", "operate", "admin"]);
    }

    /// SEC-1: a key opens until it expires or is revoked; the one before it for as long as was said.
    #[test]
    fn sec_1_a_key_opens_while_it_is_good() {
        let key = Key {
            name: Slug::new("ci").unwrap(),
            hash: [1; 32],
            former: Some(([2; 32], Millis(50))),
            scopes: Scopes::default(),
            services: Some(vec![Slug::new("billing").unwrap()]),
            sources: Some(vec!["shop".into()]),
            made: Millis(0),
            expires: Some(Millis(100)),
            revoked: None,
        };
        assert!(key.opens(&[1; 32], Millis(99)) && !key.opens(&[1; 32], Millis(100)));
        assert!(key.opens(&[2; 32], Millis(49)) && !key.opens(&[2; 32], Millis(50)));
        assert!(!key.opens(&[3; 32], Millis(0)));
        assert!(key.sees(&Slug::new("billing").unwrap()) && !key.sees(&Slug::new("mail").unwrap()));
        assert!(key.may_send_from("shop") && !key.may_send_from("api"));
        let revoked = Key { revoked: Some(Millis(10)), ..key };
        assert!(!revoked.opens(&[1; 32], Millis(5)) && !revoked.opens(&[2; 32], Millis(5)));
    }
}
