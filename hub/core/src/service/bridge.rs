//! The bridge: accepting events.

use super::context::Context;
use super::handles::BridgeHandle;
use super::observe::Observation;
use super::{AcceptError, AcceptedEvent, IncomingEvent, RenderPool};
use crate::port::store::Store;
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
