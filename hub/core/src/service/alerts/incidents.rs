//! Incidents: seeing them, saying that one has, and being quiet about one.

use super::super::audit;
use super::super::hub::{Hub, Refused};
use super::Live;
use crate::domain::alert::{Acknowledged, Incident, Mute};
use crate::port::store::{Change, IncidentFilter, Page, PageAt, Store, StoreError};
use crate::port::transport::Transport;

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// An incident, open or over.
    pub async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        if let Some(kept) = self.alerts.live.lock().await.incidents.get(id) {
            return Ok(Some(kept.incident.clone()));
        }
        self.store.incident(id).await
    }

    /// Incidents, the newest first. What the store could not take yet stands before all others.
    pub async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageAt,
    ) -> Result<Page<Incident>, StoreError> {
        let mut found = self.store.incidents(filter.clone(), page).await?;
        let live = self.alerts.live.lock().await;
        for incident in &mut found.items {
            if let Some(kept) = live.incidents.get(&incident.id) {
                incident.clone_from(&kept.incident);
            }
        }
        if page.from.is_none() {
            let known = |id: &str| found.items.iter().any(|incident| incident.id == id);
            let unsaved = live.incidents.values().filter(|kept| !kept.saved && filter.takes(&kept.incident));
            let mut all: Vec<Incident> =
                unsaved.filter(|kept| !known(&kept.incident.id)).map(|kept| kept.incident.clone()).collect();
            all.append(&mut found.items);
            found.items = all;
        }
        Ok(found)
    }

    /// Somebody has seen it.
    pub async fn acknowledge(&self, id: &str, reason: Option<String>) -> Result<Incident, Refused> {
        let at = self.now();
        let seen = Acknowledged { who: audit::by().who, at, reason };
        self.change_incident(id, "alert.acknowledge", |incident| incident.acknowledged = Some(seen)).await
    }

    /// Nobody is told about it for a while, or again from now on.
    pub async fn mute_incident(&self, id: &str, muted: Option<Mute>) -> Result<Incident, Refused> {
        let action = if muted.is_some() { "alert.mute" } else { "alert.unmute" };
        self.change_incident(id, action, |incident| incident.muted = muted).await
    }

    async fn change_incident(
        &self,
        id: &str,
        action: &str,
        change: impl FnOnce(&mut Incident),
    ) -> Result<Incident, Refused> {
        let mut live = self.alerts.live.lock().await;
        let Some(open) = open(&live, id) else {
            drop(live);
            return match self.store.incident(id).await? {
                Some(_) => Err(Refused::Conflict("it is over already".into())),
                None => Err(Refused::Missing),
            };
        };
        let mut incident = open.clone();
        change(&mut incident);
        incident.updated = self.now();
        let entry = audit::noted(action, id.to_owned(), self.now());
        self.commit_all(vec![Change::PutIncident(Box::new(incident.clone())), Change::Audit(entry)]).await?;
        if let Some(kept) = live.incidents.get_mut(id) {
            kept.incident = incident.clone();
            kept.saved = true;
        }
        drop(live);
        self.alerts.bell.notify_one();
        Ok(incident)
    }
}

fn open<'l>(live: &'l Live, id: &str) -> Option<&'l Incident> {
    live.incidents.get(id).map(|kept| &kept.incident).filter(|incident| incident.is_open())
}
