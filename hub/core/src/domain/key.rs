//! Who may do what.

use std::fmt;

use super::slug::Slug;
use super::time::Millis;

/// A key to the API, as it is kept: never the key itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Its name, unique.
    pub name: Slug,
    /// Of the key: 256 bits that were drawn by chance, so a fast hash says nothing about it.
    pub hash: [u8; 32],
    /// The one before, while it is being changed, and until when it is good.
    pub former: Option<([u8; 32], Millis)>,
    /// What it may do.
    pub scopes: Scopes,
    /// With which services; with all, if it is none.
    pub services: Option<Vec<Slug>>,
    /// From which sources it may send events; from all, if it is none.
    pub sources: Option<Vec<String>>,
    /// Since when.
    pub made: Millis,
    /// It is good until then.
    pub expires: Option<Millis>,
    /// It was taken back then.
    pub revoked: Option<Millis>,
}

impl Key {
    /// Whether this hash opens the door at this time.
    #[must_use]
    pub fn opens(&self, hash: &[u8; 32], now: Millis) -> bool {
        let good = self.revoked.is_none() && self.expires.is_none_or(|expires| now < expires);
        let former = self.former.is_some_and(|(former, until)| former == *hash && now < until);
        good && (self.hash == *hash || former)
    }

    /// Whether it is for this service.
    #[must_use]
    pub fn sees(&self, service: &Slug) -> bool {
        self.services.as_ref().is_none_or(|services| services.contains(service))
    }

    /// Whether events from this source may come with it.
    #[must_use]
    pub fn may_send_from(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.iter().any(|known| known == source))
    }
}

/// Something that a key may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// Send events.
    Ingest,
    /// Call services through the gateway.
    Call,
    /// Look at everything.
    Read,
    /// Look, and do what is done on duty: pause, replay, move circuits.
    Operate,
    /// Everything, the registry and keys too.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 5] = [Scope::Ingest, Scope::Call, Scope::Read, Scope::Operate, Scope::Admin];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Scope::Ingest => "ingest",
            Scope::Call => "call",
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.word() == word)
    }
}

/// Several scopes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether it allows this. Who administers may do everything, who operates may look.
    #[must_use]
    pub fn allow(self, scope: Scope) -> bool {
        let has = |scope: Scope| self.0 & (1 << scope as u8) != 0;
        has(scope) || has(Scope::Admin) || (scope == Scope::Read && has(Scope::Operate))
    }

    /// Those that were named.
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
