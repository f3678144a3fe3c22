//! The document of an API key: hashes, and never the key itself.

use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::Record;
use super::text::{Text, texts, values};

#[derive(Serialize, Deserialize)]
pub(crate) struct KeyRecord {
    hash: Text<[u8; 32]>,
    #[serde(default)]
    former: Option<FormerHashRecord>,
    scopes: Vec<Text<Scope>>,
    #[serde(default)]
    services: Option<Vec<Text<Slug>>>,
    #[serde(default)]
    sources: Option<Vec<String>>,
    made_ms: i64,
    #[serde(default)]
    expires_ms: Option<i64>,
    #[serde(default)]
    revoked_ms: Option<i64>,
}

/// The hash before a rotation, for as long as it is valid.
#[derive(Serialize, Deserialize)]
struct FormerHashRecord {
    hash: Text<[u8; 32]>,
    until_ms: i64,
}

impl Record for KeyRecord {
    const TABLE: &'static str = "keys";
}

impl From<&Key> for KeyRecord {
    fn from(key: &Key) -> Self {
        let Key { name: _, hash, former, scopes, services, sources, made, expires, revoked } = key.clone();
        KeyRecord {
            hash: Text(hash),
            former: former.map(|(hash, until)| FormerHashRecord { hash: Text(hash), until_ms: until.0 }),
            scopes: scopes.named().map(Text).collect(),
            services: texts(services),
            sources,
            made_ms: made.0,
            expires_ms: expires.map(|at| at.0),
            revoked_ms: revoked.map(|at| at.0),
        }
    }
}

impl KeyRecord {
    pub(crate) fn into_key(self, name: Slug) -> Key {
        let KeyRecord { hash, former, scopes, services, sources, made_ms, expires_ms, revoked_ms } = self;
        Key {
            name,
            hash: hash.0,
            former: former.map(|former| (former.hash.0, Millis(former.until_ms))),
            scopes: scopes.into_iter().map(|Text(scope)| scope).collect(),
            services: values(services),
            sources,
            made: Millis(made_ms),
            expires: expires_ms.map(Millis),
            revoked: revoked_ms.map(Millis),
        }
    }
}
