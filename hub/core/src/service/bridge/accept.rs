//! Accepting an event: it is matched, rendered, and committed together with its deliveries. Only then is it acknowledged.

use std::sync::Arc;

use bytes::Bytes;
use seawall::Clock;

use super::content::{AcceptError, AcceptedEvent, IncomingEvent, fingerprint, has_same_content, payload};
use super::render_pool::{QUICK_BYTES_MAX, QUICK_WORK_MAX, RenderError, RenderPool};
use super::rule_set::{MatchCounts, MatchResult, RenderedDelivery, RuleSet, RuleTiming};
use crate::domain::delivery::{DeliveryId, DeliveryState};
use crate::domain::event::{EVENT_ID_MAX, Event};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{
    Change, Claim, CommitResult, EventReads, IdempotencyRecord, InitialState, NewDelivery, StoreError,
    UnitOfWork, UnitStore, WritePriority,
};
use crate::port::transport::Transport;
use crate::render::{EventFields, TemplateContext, Tree};
use crate::service::context::Context;
use crate::service::dispatch::PendingDelivery;
use crate::service::handles::BridgeHandle;
use crate::service::observe::Observation;

/// The number of events after which other tasks get a turn.
const TURN: usize = 8;

impl<S: UnitStore + EventReads, T: Transport> BridgeHandle<S, T> {
    /// Accepts an event, and sends its deliveries.
    pub async fn accept(&self, cx: &Context, incoming: IncomingEvent) -> Result<AcceptedEvent, AcceptError> {
        let core = &*self.core;
        let (observed, timer) = (core.observer.accepting(&incoming), core.telemetry.comes(&incoming));
        let accepted = core.accept.accept(incoming, cx.now, |service| core.deliver.admit(service)).await;
        core.telemetry.ended(&timer, &accepted);
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
        let begin = |event| (core.observer.accepting(event), core.telemetry.comes(event));
        let begun: Vec<_> = incoming.iter().map(begin).collect();
        let mut all = core.accept.accept_all(incoming, cx.now, |service| core.deliver.admit(service)).await;
        for ((observed, timer), accepted) in begun.into_iter().zip(&all) {
            core.telemetry.ended(&timer, accepted);
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

/// Accepts events: matches rules, and commits event and deliveries in one unit.
#[derive(Debug)]
pub struct EventAcceptor<S> {
    store: S,
    rules: Arc<RuleSet>,
    /// Runs rules that take long.
    pool: RenderPool,
    /// Measures the rules, if that is wanted.
    timed: Option<Clock>,
}

/// An event that is matched and rendered, before it is committed.
struct PreparedEvent {
    event: Arc<Event>,
    rendered: Vec<RenderedDelivery>,
    counts: MatchCounts,
    timing: Option<RuleTiming>,
}

impl<S: UnitStore + EventReads> EventAcceptor<S> {
    /// Creates an acceptor over a store, with these rules.
    pub fn new(store: S, rules: RuleSet) -> Self {
        EventAcceptor { store, rules: Arc::new(rules), pool: RenderPool::for_events(), timed: None }
    }

    /// Returns the pool for renderings that take long.
    pub fn pool(&self) -> &RenderPool {
        &self.pool
    }

    /// Measures the rules from now on.
    pub fn time_rules(&mut self, clock: Clock) {
        self.timed = Some(clock);
    }

    /// Returns the compiled rules.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Commits an event with its deliveries. When this succeeds, they are on the disk. `admit` decides whether a delivery to a
    /// service has room in memory; if not, it starts in the store.
    pub async fn accept(
        &self,
        incoming: IncomingEvent,
        now: Millis,
        admit: impl Fn(&Slug) -> bool,
    ) -> Result<AcceptedEvent, AcceptError> {
        let (prepared, unit) = self.prepare(incoming, now, &admit).await?;
        let committed = self.store.commit(WritePriority::Ingest, unit).await;
        self.accepted(prepared, committed).await
    }

    /// Commits several events, each for itself, in as few commits as possible.
    pub async fn accept_all(
        &self,
        incoming: Vec<IncomingEvent>,
        now: Millis,
        admit: impl Fn(&Slug) -> bool,
    ) -> Vec<Result<AcceptedEvent, AcceptError>> {
        let mut prepared: Vec<Result<(PreparedEvent, UnitOfWork), AcceptError>> =
            Vec::with_capacity(incoming.len());
        for (at, event) in incoming.into_iter().enumerate() {
            prepared.push(self.prepare(event, now, &admit).await);
            // Each of them is quick, and many of them together are not.
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        let (mut units, mut events) = (Vec::new(), Vec::with_capacity(prepared.len()));
        for prepared in prepared {
            events.push(prepared.map(|(prepared, unit)| {
                units.push(unit);
                prepared
            }));
        }
        let mut committed = self.store.commit_all(WritePriority::Ingest, units).await.into_iter();
        let missing = || Err(StoreError::Failed("the store said nothing of it".into()));
        let mut answers = Vec::with_capacity(events.len());
        for prepared in events {
            answers.push(match prepared {
                Ok(prepared) => self.accepted(prepared, committed.next().unwrap_or_else(missing)).await,
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn prepare(
        &self,
        incoming: IncomingEvent,
        now: Millis,
        admit: impl Fn(&Slug) -> bool,
    ) -> Result<(PreparedEvent, UnitOfWork), AcceptError> {
        check_id(&incoming.id)?;
        let time = incoming.time.clone().unwrap_or_else(|| now.to_string());
        let payload = payload(&incoming, &time);
        let fingerprint = fingerprint(&incoming);
        let began = self.timed.as_ref().map(|clock| (clock.wall(), clock));
        let (incoming, MatchResult { deliveries: rendered, counts }) =
            self.apply_rules(incoming, time, &payload).await?;
        let timing = began.map(|(began, clock)| RuleTiming::since(began, clock, &rendered));
        let deliveries = rendered.iter().map(|one| new_delivery(one, &admit)).collect();
        let IncomingEvent { id, kind, source, trace, key, .. } = incoming;
        let MatchCounts { considered, filtered, .. } = counts;
        let event =
            Event { id, kind, source, payload, fingerprint, accepted: now, trace, considered, filtered };
        let event = Arc::new(event);
        let claim = key.map(|key| {
            Change::ClaimKey(IdempotencyRecord {
                scope: "events",
                key,
                fingerprint,
                note: event.id.clone(),
                at: now,
            })
        });
        let changes = claim.into_iter().chain([Change::AddEvent(event.clone(), deliveries)]).collect();
        Ok((PreparedEvent { event, rendered, counts, timing }, UnitOfWork { changes }))
    }
}

impl<S: UnitStore + EventReads> EventAcceptor<S> {
    /// Applies the rules: at once if that is quick, otherwise on a blocking thread.
    async fn apply_rules(
        &self,
        incoming: IncomingEvent,
        time: String,
        payload: &Bytes,
    ) -> Result<(IncomingEvent, MatchResult), AcceptError> {
        let rules = self.rules();
        if payload.len() <= QUICK_BYTES_MAX {
            let context = || context(&incoming, &time);
            let matched = rules.apply_quickly(incoming.kind.as_str(), context, payload, QUICK_WORK_MAX);
            if let Some(matched) = matched {
                return Ok((incoming, matched));
            }
        }
        let (rules, payload) = (rules.clone(), payload.clone());
        let apply = move || {
            let matched = rules.apply(incoming.kind.as_str(), || context(&incoming, &time), &payload);
            (incoming, matched)
        };
        self.pool.run(apply).await.map_err(|failed| match failed {
            RenderError::Busy | RenderError::Stopping => AcceptError::Store(StoreError::Busy),
        })
    }

    /// Returns the accepted event from the result of the store.
    async fn accepted(
        &self,
        prepared: PreparedEvent,
        committed: Result<CommitResult, StoreError>,
    ) -> Result<AcceptedEvent, AcceptError> {
        let PreparedEvent { event, rendered, counts, timing } = prepared;
        match committed {
            Ok(CommitResult { deliveries, epoch, .. }) => {
                let held = deliveries.iter().filter(|(_, state)| *state == DeliveryState::Held).count();
                let started = deliveries.iter().zip(rendered).filter_map(|(&(id, state), rendered)| {
                    super::telemetry::rendered(id, &rendered, &event);
                    (state == DeliveryState::Leased)
                        .then(|| PendingDelivery::new(Claim { delivery: id, epoch }, rendered, &event))
                        .flatten()
                });
                Ok(AcceptedEvent {
                    started: started.collect(),
                    id: event.id.clone(),
                    deliveries: deliveries.into_iter().map(|(id, _)| id).collect(),
                    deduplicated: false,
                    counts,
                    held: u32::try_from(held).unwrap_or(u32::MAX),
                    timing,
                })
            }
            Err(StoreError::EventExists { fingerprint: there, deliveries }) => {
                let id = event.id.clone();
                self.accepted_before(&event, there, id, deliveries).await
            }
            Err(StoreError::AlreadyApplied { fingerprint: there, note, deliveries }) => {
                self.accepted_before(&event, there, note, deliveries).await
            }
            Err(error) => Err(AcceptError::Store(error)),
        }
    }
}

impl<S: UnitStore + EventReads> EventAcceptor<S> {
    /// Answers an event that was accepted before like the first time, if its content is the same.
    async fn accepted_before(
        &self,
        event: &Event,
        fingerprint: [u8; 32],
        id: String,
        deliveries: Vec<DeliveryId>,
    ) -> Result<AcceptedEvent, AcceptError> {
        let stored = self.store.event(&id, Some(&event.source)).await.map_err(AcceptError::Store)?;
        let Some(stored) = stored else { return Err(AcceptError::OtherContent) };
        if fingerprint != event.fingerprint && !has_same_content(event, &stored) {
            return Err(AcceptError::OtherContent);
        }
        let Event { considered, filtered, .. } = stored;
        let counts = MatchCounts { considered, filtered, unclear: 0 };
        Ok(AcceptedEvent {
            id,
            deliveries,
            deduplicated: true,
            started: Vec::new(),
            counts,
            held: 0,
            timing: None,
        })
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

fn context<'a>(incoming: &'a IncomingEvent, time: &'a str) -> TemplateContext<'a> {
    TemplateContext::new(EventFields {
        id: &incoming.id,
        kind: incoming.kind.as_str(),
        source: &incoming.source,
        time,
        subject: incoming.subject.as_deref(),
        extensions: &incoming.extensions,
        data: Tree::parse(incoming.data.as_str()),
    })
}

/// Returns an event as it would be stored, for a preview.
#[must_use]
pub fn sample_event(incoming: &IncomingEvent, now: Millis) -> Event {
    let time = incoming.time.clone().unwrap_or_else(|| now.to_string());
    Event {
        id: incoming.id.clone(),
        kind: incoming.kind.clone(),
        source: incoming.source.clone(),
        payload: payload(incoming, &time),
        fingerprint: fingerprint(incoming),
        accepted: now,
        trace: incoming.trace.clone(),
        considered: 0,
        filtered: 0,
    }
}

/// Builds the delivery of a rule. An event that can't be rendered becomes a dead letter with its reason, because it can't be sent
/// later either.
pub(in crate::service) fn new_delivery(
    rendered: &RenderedDelivery,
    admit: impl Fn(&Slug) -> bool,
) -> NewDelivery {
    let (request, initial) = match &rendered.request {
        Err(mistake) => {
            let (reason, error) = (rendered.reason(), mistake.to_string());
            (Vec::new(), InitialState::Dead { reason, error, hold: rendered.hold })
        }
        Ok(request) if !rendered.enabled => (request.to_bytes(), InitialState::Held),
        Ok(request) if admit(&rendered.service) => (request.to_bytes(), InitialState::Leased),
        Ok(request) => (request.to_bytes(), InitialState::Queued),
    };
    NewDelivery {
        rule: rendered.rule.clone(),
        service: rendered.service.clone(),
        request,
        initial,
        order: rendered.order.clone(),
    }
}

fn check_id(id: &str) -> Result<(), AcceptError> {
    if id.is_empty() {
        return Err(AcceptError::BadId("must not be empty"));
    }
    if id.len() > EVENT_ID_MAX {
        return Err(AcceptError::BadId("must have at most 200 characters"));
    }
    if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AcceptError::BadId("must consist of visible ASCII characters"));
    }
    Ok(())
}
