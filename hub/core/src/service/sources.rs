//! Sources of webhooks.

use std::sync::PoisonError;

use tracing::info;

use super::hub::{Hub, Refused, check_version, sorted};
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;
use crate::render::Naming;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Keeps a source, new or changed. `expected` is the version that whoever changes it has seen.
    pub async fn put_source(&self, mut source: Source, expected: Option<u64>) -> Result<Source, Refused> {
        Naming::new(&source.event_type, source.event_id.as_deref()).map_err(|mistakes| {
            Refused::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
        })?;
        let _one_after_the_other = self.changing.lock().await;
        let found = self.source(&source.name).map_or(0, |source| source.version);
        check_version(expected, found)?;
        (source.version, source.changed) = (found + 1, self.now());
        self.commit(Change::PutSource(source.clone())).await?;
        self.sources
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(source.name.clone(), source.clone());
        let Source { name, version, enabled, .. } = &source;
        info!(target: "seawall", source = name.as_str(), version, enabled, "[Registry][PutSource] Success.");
        Ok(source)
    }

    /// Deletes a source: what it sends is refused from now on.
    pub async fn delete_source(&self, name: &Slug, expected: Option<u64>) -> Result<(), Refused> {
        let _one_after_the_other = self.changing.lock().await;
        let source = self.source(name).ok_or(Refused::Missing)?;
        check_version(expected, source.version)?;
        self.commit(Change::DeleteSource(name.clone(), source.version)).await?;
        self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        info!(target: "seawall", source = name.as_str(), "[Registry][DeleteSource] Success.");
        Ok(())
    }

    /// All sources, in the order of their names.
    pub fn sources(&self) -> Vec<Source> {
        sorted(&self.sources, |source| &source.name)
    }

    /// A source.
    pub fn source(&self, name: &Slug) -> Option<Source> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
