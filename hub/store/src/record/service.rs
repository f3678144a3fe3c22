//! The document of a service.

use seawall_hub_core::domain::service::{SealedSecret, Service};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::Record;
use super::text::Text;

#[derive(Serialize, Deserialize)]
pub(crate) struct ServiceRecord {
    address: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    auth: Option<Text<SealedSecret>>,
    policy: String,
    #[serde(default)]
    paused: bool,
    changed_ms: i64,
}

impl Record for ServiceRecord {
    const TABLE: &'static str = "services";
}

impl From<&Service> for ServiceRecord {
    fn from(service: &Service) -> Self {
        let Service { name: _, version: _, address, headers, auth, policy, paused, changed } =
            service.clone();
        ServiceRecord { address, headers, auth: auth.map(Text), policy, paused, changed_ms: changed.0 }
    }
}

impl ServiceRecord {
    pub(crate) fn into_service(self, name: Slug, version: u64) -> Service {
        let ServiceRecord { address, headers, auth, policy, paused, changed_ms } = self;
        let auth = auth.map(|Text(auth)| auth);
        Service { name, version, address, headers, auth, policy, paused, changed: Millis(changed_ms) }
    }
}
