//! Secrets, sealed anew. What is in them nobody here can read.

use std::sync::PoisonError;

use super::audit;
use super::hub::{Hub, Refused};
use crate::domain::service::Sealed;
use crate::port::store::{Change, Owner, Reseal, Store};
use crate::port::transport::Transport;

/// So many are sealed anew in one unit.
const TOGETHER: usize = 64;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Remembers that somebody changes the key of all secrets.
    pub async fn note_rotation(&self, key: &str) -> Result<(), Refused> {
        let entry = audit::noted("secrets.rotate", key.to_owned(), self.now());
        self.commit(Change::Audit(entry)).await.map(drop)
    }

    /// Seals anew what `anew` has another seal for. Versions stay: nothing has changed for anybody. How many it was.
    pub async fn reseal(&self, anew: impl Fn(&Owner, &Sealed) -> Option<Sealed>) -> Result<usize, Refused> {
        let _one_after_the_other = self.changing.lock().await;
        // What is kept, and not what is in memory: somebody before may have been interrupted between the two.
        let kept = self.store.registered().await?;
        let of_services = kept.services.into_iter().filter_map(|service| {
            let owner = Owner::Service(service.name);
            service.auth.map(|sealed| (owner, sealed))
        });
        let of_sources = kept.sources.into_iter().map(|source| (Owner::Source(source.name), source.proof));
        let of_channels =
            kept.channels.into_iter().map(|channel| (Owner::Channel(channel.name), channel.settings));
        let changes: Vec<Reseal> = of_services
            .chain(of_sources)
            .chain(of_channels)
            .filter_map(|(owner, was)| anew(&owner, &was).map(|now| Reseal { owner, was, now }))
            .collect();
        for together in changes.chunks(TOGETHER) {
            let unit = together.iter().cloned().map(Change::Reseal).collect();
            self.commit_all(unit).await?;
            for change in together {
                self.use_sealed(change)?;
            }
        }
        Ok(changes.len())
    }

    fn use_sealed(&self, Reseal { owner, now, .. }: &Reseal) -> Result<(), Refused> {
        match owner {
            Owner::Service(name) => {
                let Some(mut service) = self.service(name) else { return Ok(()) };
                service.auth = Some(now.clone());
                self.use_service(service)
            }
            Owner::Channel(name) => {
                self.alerts.use_sealed(name, now);
                Ok(())
            }
            Owner::Source(name) => {
                let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
                if let Some(source) = sources.get_mut(name) {
                    source.proof = now.clone();
                }
                Ok(())
            }
        }
    }
}
