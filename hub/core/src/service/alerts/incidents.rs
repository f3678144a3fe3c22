//! Incidents: seeing them, saying that one has, and being quiet about one.

use super::LiveIncidents;
use crate::domain::alert::{Acknowledgement, Incident, Mute};
use crate::port::store::{Change, IncidentFilter, Page, PageRequest, Store, StoreError};
use crate::port::transport::Transport;
use crate::service::audit;
use crate::service::context::Context;
use crate::service::handles::AlertHandle;
use crate::service::shared::ChangeError;

impl<S: Store + Clone, T: Transport> AlertHandle<S, T> {
    /// Returns an incident, open or resolved.
    pub async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        if let Some(tracked) = self.core.alerts.live.lock().await.incidents.get(id) {
            return Ok(Some(tracked.incident.clone()));
        }
        self.core.store.incident(id).await
    }

    /// Lists incidents, the newest first. Those that the store could not take yet come before all others.
    pub async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> Result<Page<Incident>, StoreError> {
        let mut found = self.core.store.incidents(filter.clone(), page).await?;
        let live = self.core.alerts.live.lock().await;
        for incident in &mut found.items {
            if let Some(tracked) = live.incidents.get(&incident.id) {
                incident.clone_from(&tracked.incident);
            }
        }
        if page.from.is_none() {
            let known = |id: &str| found.items.iter().any(|incident| incident.id == id);
            let unsaved =
                live.incidents.values().filter(|tracked| !tracked.saved && filter.takes(&tracked.incident));
            let mut all: Vec<Incident> = unsaved
                .filter(|tracked| !known(&tracked.incident.id))
                .map(|tracked| tracked.incident.clone())
                .collect();
            all.append(&mut found.items);
            found.items = all;
        }
        Ok(found)
    }

    /// Acknowledges an incident.
    pub async fn acknowledge(
        &self,
        cx: &Context,
        id: &str,
        reason: Option<String>,
    ) -> Result<Incident, ChangeError> {
        let at = cx.now;
        let seen = Acknowledgement { who: cx.author.to_string(), at, reason };
        self.change_incident(cx, id, "alert.acknowledge", |incident| incident.acknowledged = Some(seen)).await
    }

    /// Mutes or unmutes an incident.
    pub async fn mute_incident(
        &self,
        cx: &Context,
        id: &str,
        muted: Option<Mute>,
    ) -> Result<Incident, ChangeError> {
        let action = if muted.is_some() { "alert.mute" } else { "alert.unmute" };
        self.change_incident(cx, id, action, |incident| incident.muted = muted).await
    }

    async fn change_incident(
        &self,
        cx: &Context,
        id: &str,
        action: &str,
        change: impl FnOnce(&mut Incident),
    ) -> Result<Incident, ChangeError> {
        let mut live = self.core.alerts.live.lock().await;
        let Some(open) = open(&live, id) else {
            drop(live);
            return match self.core.store.incident(id).await? {
                Some(_) => Err(ChangeError::Conflict("it is already resolved".into())),
                None => Err(ChangeError::Missing),
            };
        };
        let mut incident = open.clone();
        change(&mut incident);
        incident.updated = cx.now;
        let entry = audit::entry(action, id.to_owned(), cx);
        self.core
            .commit_all(cx, vec![Change::PutIncident(Box::new(incident.clone())), Change::Audit(entry)])
            .await?;
        if let Some(tracked) = live.incidents.get_mut(id) {
            tracked.incident = incident.clone();
            tracked.saved = true;
        }
        drop(live);
        self.core.alerts.wake.notify_one();
        Ok(incident)
    }
}

fn open<'l>(live: &'l LiveIncidents, id: &str) -> Option<&'l Incident> {
    live.incidents.get(id).map(|tracked| &tracked.incident).filter(|incident| incident.is_open())
}
