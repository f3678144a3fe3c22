//! Sources of webhooks.

use tracing::info;

use super::change_key::{ChangeKey, note_of};
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::port::store::{Change, Store};
use crate::port::transport::Transport;
use crate::render::WebhookNaming;
use crate::service::context::Context;
use crate::service::handles::RegistryHandle;
use crate::service::shared::{ChangeError, check_version, sorted};

impl<S: Store + Clone, T: Transport> RegistryHandle<S, T> {
    /// Creates or changes a source. `expected` is the version that the caller has seen.
    pub async fn put_source(
        &self,
        cx: &Context,
        source: Source,
        expected: Option<u64>,
    ) -> Result<Source, ChangeError> {
        self.put_source_once(cx, source, expected, None).await
    }

    /// Creates or changes a source, once under an idempotency key.
    pub async fn put_source_once(
        &self,
        cx: &Context,
        mut source: Source,
        expected: Option<u64>,
        once: Option<ChangeKey>,
    ) -> Result<Source, ChangeError> {
        WebhookNaming::new(&source.event_type, source.event_id.as_deref()).map_err(|mistakes| {
            ChangeError::Wrong(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect())
        })?;
        let _one_after_the_other = self.core.changing.lock().await;
        self.core.check_repeated(cx, once.as_ref()).await?;
        let found = self.source(&source.name).map_or(0, |source| source.version);
        check_version(expected, found)?;
        (source.version, source.changed) = (found + 1, cx.now);
        self.core.commit_once(cx, once, note_of(found), Change::PutSource(source.clone())).await?;
        self.core.sources.write().insert(source.name.clone(), source.clone());
        let Source { name, version, enabled, .. } = &source;
        info!(target: "seawall", source = name.as_str(), version, enabled, "[Registry][PutSource] Success.");
        Ok(source)
    }

    /// Deletes a source: its requests are refused from now on.
    pub async fn delete_source(
        &self,
        cx: &Context,
        name: &Slug,
        expected: Option<u64>,
    ) -> Result<(), ChangeError> {
        let _one_after_the_other = self.core.changing.lock().await;
        let source = self.source(name).ok_or(ChangeError::Missing)?;
        check_version(expected, source.version)?;
        self.core.commit(cx, Change::DeleteSource(name.clone(), source.version)).await?;
        self.core.sources.write().remove(name);
        info!(target: "seawall", source = name.as_str(), "[Registry][DeleteSource] Success.");
        Ok(())
    }

    /// Lists all sources, in the order of their names.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        sorted(&self.core.sources, |source| &source.name)
    }

    /// Returns the source with this name.
    #[must_use]
    pub fn source(&self, name: &Slug) -> Option<Source> {
        self.core.sources.read().get(name).cloned()
    }
}
