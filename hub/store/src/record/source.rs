//! The document of a source.

use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use serde::{Deserialize, Serialize};

use super::Record;
use super::text::Text;

#[derive(Serialize, Deserialize)]
pub(crate) struct SourceRecord {
    proof: Text<SealedSecret>,
    event_type: String,
    #[serde(default)]
    event_id: Option<String>,
    changed_ms: i64,
}

impl Record for SourceRecord {
    const TABLE: &'static str = "sources";
}

impl From<&Source> for SourceRecord {
    fn from(source: &Source) -> Self {
        let Source { name: _, version: _, proof, event_type, event_id, enabled: _, changed } = source.clone();
        SourceRecord { proof: Text(proof), event_type, event_id, changed_ms: changed.0 }
    }
}

impl SourceRecord {
    pub(crate) fn into_source(self, name: Slug, version: u64, enabled: bool) -> Source {
        let SourceRecord { proof: Text(proof), event_type, event_id, changed_ms } = self;
        Source { name, version, proof, event_type, event_id, enabled, changed: Millis(changed_ms) }
    }
}
