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

use super::context::Context;
use super::handles::BridgeHandle;
use super::observe::Observation;
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::port::store::{DeliveryFilter, EventFilter, Page, PageRequest, Store, StoreError, StoredDelivery};
use crate::port::transport::Transport;

impl<S: Store + Clone, T: Transport> BridgeHandle<S, T> {
    /// Accepts an event, and sends its deliveries.
    pub async fn accept(&self, cx: &Context, incoming: IncomingEvent) -> Result<AcceptedEvent, AcceptError> {
        let core = &*self.core;
        let (observed, timer) = (core.observer.accepting(&incoming), core.watch.comes(&incoming));
        let accepted = core.accept.accept(incoming, cx.now, |service| core.deliver.admit(service)).await;
        core.watch.ended(&timer, &accepted);
        end(observed, &accepted);
        let mut accepted = accepted?;
        core.deliver.begin(std::mem::take(&mut accepted.started));
        Ok(accepted)
    }

    /// Accepts several events, each for itself.
    pub async fn accept_all(
        &self,
        cx: &Context,
        incoming: Vec<IncomingEvent>,
    ) -> Vec<Result<AcceptedEvent, AcceptError>> {
        let core = &*self.core;
        let begin = |event| (core.observer.accepting(event), core.watch.comes(event));
        let begun: Vec<_> = incoming.iter().map(begin).collect();
        let mut all = core.accept.accept_all(incoming, cx.now, |service| core.deliver.admit(service)).await;
        for ((observed, timer), accepted) in begun.into_iter().zip(&all) {
            core.watch.ended(&timer, accepted);
            end(observed, accepted);
        }
        for accepted in all.iter_mut().flatten() {
            core.deliver.begin(std::mem::take(&mut accepted.started));
        }
        all
    }

    /// Returns the pool for renderings that take long.
    #[must_use]
    pub fn render_pool(&self) -> &RenderPool {
        self.core.accept.pool()
    }
}

/// Ends the observation of an acceptance. An event that was there before is not accepted again.
fn end(observed: Option<Box<dyn Observation>>, accepted: &Result<AcceptedEvent, AcceptError>) {
    match (observed, accepted) {
        (Some(observed), Ok(accepted)) if !accepted.deduplicated => observed.accepted(accepted),
        (Some(observed), _) => observed.forget(),
        (None, _) => {}
    }
}

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
