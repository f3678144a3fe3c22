//! The bridge: an event comes in, its rules match it and render its requests, and it is committed with its deliveries.

pub(in crate::service) mod accept;
mod content;
pub(in crate::service) mod evaluate;
pub(in crate::service) mod render_pool;
pub(in crate::service) mod rule_set;
pub(in crate::service) mod telemetry;

pub use accept::{EventAcceptor, sample_event};
pub use content::{AcceptError, AcceptedEvent, EventData, IncomingEvent};
pub use evaluate::{BACKTEST_MAX, BacktestReport, Evaluation};
pub use render_pool::{QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderError, RenderPool};
pub use rule_set::{
    MatchCounts, MatchResult, RenderedDelivery, RuleCompileError, RuleSet, RuleTiming, compile,
};

use seawall_dist::deadletter::Attempt;

use super::handles::BridgeHandle;
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::port::store::{DeliveryFilter, EventFilter, Page, PageRequest, Store, StoreError, StoredDelivery};

impl<S: Store, T> BridgeHandle<S, T> {
    /// Returns the newest event with this id, from this source or from any.
    pub async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        self.core.store.event(id, source).await
    }

    /// Lists events, the newest first.
    pub async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        self.core.store.events(filter, page).await
    }

    /// Returns a delivery with its recorded attempts.
    pub async fn delivery(
        &self,
        id: DeliveryId,
    ) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        self.core.store.delivery(id).await
    }

    /// Lists deliveries, the newest first.
    pub async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.core.store.deliveries(filter, page).await
    }
}
