//! Waiting for what is under way to a service that is about to go.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Deliver;
use super::lane::Lane;
use crate::domain::slug::Slug;
use crate::port::store::Store;
use crate::port::transport::Transport;

/// A service that is about to go is looked at so often.
const IDLE_LOOK: Duration = Duration::from_millis(5);

impl<S: Store, T: Transport> Deliver<S, T> {
    /// Begins nothing more of a service; what is under way ends.
    pub(in crate::service) fn stop_service(&self, name: &Slug) {
        if let Some(lane) = self.shared.lane(name) {
            lane.stop();
        }
    }

    /// Goes on with a service after all.
    pub(in crate::service) fn resume_service(&self, name: &Slug) {
        if let Some(lane) = self.shared.lane(name) {
            lane.resume();
        }
    }

    /// Waits until nothing of a service that was stopped is under way, or so long. One that goes on is not waited for.
    pub(in crate::service) async fn wait_until_idle(&self, name: &Slug, most: Duration) {
        let Some(lane) = self.shared.lane(name).filter(|lane| lane.is_stopping()) else { return };
        let until = self.shared.clock.precise() + most;
        while !lane.is_idle() && self.shared.clock.precise() < until {
            tokio::time::sleep(IDLE_LOOK).await;
        }
    }
}

impl Lane {
    /// Whether nothing is begun any more.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Goes on after all.
    pub(super) fn resume(&self) {
        self.stopping.store(false, Ordering::Release);
        self.bell.notify_one();
    }
}
