//! Dead letters: reading, replaying and discarding them, one by one.

use seawall_dist::deadletter::{Fault, Origin, Record};
use sha2::{Digest, Sha256};
use tracing::field::display;
use tracing::info;

use super::call::GATEWAY_RULE;
use super::evaluate::{Evaluation, render};
use super::hub::{Hub, Refused};
use super::rulebook::compile;
use crate::domain::delivery::{DeliveryId, State};
use crate::domain::event::Event;
use crate::port::store::{Birth, Change, Dead, NewDelivery, Once, Replay, Store, StoreError};
use crate::port::transport::Transport;
use crate::render::Request;

/// How a dead letter is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Rendered from the raw event by the rule of today.
    #[default]
    Render,
    /// The same bytes as the first time.
    Same,
}

/// What to replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Again {
    /// Which dead letter.
    pub dead: DeliveryId,
    /// How.
    pub mode: Mode,
    /// Also if it has been replayed, and that is under way or went well.
    pub again: bool,
    /// Whoever asks again under this key means the same.
    pub key: Option<String>,
}

impl<S: Store + Clone, T: Transport> Hub<S, T> {
    /// Sends a dead letter again, as a new delivery that is linked to it, with fresh attempts. It obeys circuit, limits and
    /// order like any other.
    pub async fn replay(&self, replay: &Again) -> Result<DeliveryId, Refused> {
        let found = self.store.dead_letter(replay.dead).await?;
        let Some((Dead { delivery: kept, .. }, _, event)) = found else { return Err(Refused::Missing) };
        // A call was never rendered: there is nothing but the request as it was.
        let mode = if kept.rule.0.as_str() == GATEWAY_RULE { Mode::Same } else { replay.mode };
        let (rule, request) = match mode {
            Mode::Same if kept.request.is_empty() => {
                let reason = "no request could ever be made of it, so there is nothing to send again as it was; mend the \
                              rule, and replay with mode `render`";
                return Err(Refused::Conflict(reason.into()));
            }
            Mode::Same => (kept.rule.clone(), kept.request.clone()),
            Mode::Render => {
                let rule = self.rule(&kept.rule.0).ok_or_else(|| {
                    Refused::Conflict(format!("rule `{}` is gone; replay with mode `same`", kept.rule.0))
                })?;
                let request = rendered(&rule, &event)?;
                ((rule.name, rule.version), request.to_bytes())
            }
        };
        // A rule may send elsewhere today.
        let service = match mode {
            Mode::Render => self.rule(&rule.0).map_or(kept.service, |rule| rule.service),
            Mode::Same => kept.service,
        };
        if self.service(&service).is_none() {
            return Err(Refused::Conflict(format!("service `{service}` is gone; register it again")));
        }
        let at = self.now();
        let new = NewDelivery { rule, service, request, birth: Birth::Queued, order: kept.order.clone() };
        let mut changes = Vec::new();
        if let Some(key) = &replay.key {
            let fingerprint = fingerprint(replay);
            let (key, note) = (key.clone(), String::new());
            changes.push(Change::Once(Once { scope: "replay", key, fingerprint, note, at }));
        }
        changes.push(Change::Replay(Replay { dead: replay.dead, new, at, again: replay.again }));
        match self.commit_all(changes).await {
            Ok(committed) => {
                self.deliver.look_again();
                let (trace, event) = (kept.trace.map(display), &*kept.event);
                let replayed = committed.deliveries.first().map(|(id, _)| display(id));
                info!(target: "seawall", traceId = trace, deadLetterId = %replay.dead, eventId = event, deliveryId = replayed, "[DeadLetter][Replay] Success.");
                committed.deliveries.first().map(|(id, _)| *id).ok_or(Refused::Missing)
            }
            Err(StoreError::Happened { fingerprint: there, deliveries, .. })
                if there == fingerprint(replay) =>
            {
                deliveries.first().copied().ok_or(Refused::Missing)
            }
            Err(StoreError::Happened { .. }) => {
                let reason = "the key was used for another replay; use another key";
                Err(Refused::Wrong(vec![("Idempotency-Key".into(), reason.into())]))
            }
            Err(StoreError::Replayed(id, state)) => Err(Refused::Conflict(format!(
                "it has been replayed as {id}, which {}; with `again: true` it is sent once more",
                if state == State::Delivered { "is delivered" } else { "is under way" }
            ))),
            Err(StoreError::NotDead(_)) => Err(Refused::Missing),
            Err(error) => Err(Refused::Store(error)),
        }
    }

    /// A dead letter is done with, and goes out of sight.
    pub async fn discard(&self, dead: DeliveryId) -> Result<(), Refused> {
        match self.commit(Change::Discard { dead, at: self.now() }).await {
            Ok(_) => {
                self.deliver.look_again();
                info!(target: "seawall", deadLetterId = %dead, "[DeadLetter][Discard] Success.");
                Ok(())
            }
            Err(Refused::Store(StoreError::NotDead(_))) => Err(Refused::Missing),
            Err(refused) => Err(refused),
        }
    }

    /// A dead letter in the form that all dead letters have.
    pub async fn dead_letter(&self, id: DeliveryId) -> Result<Option<(Dead, Record)>, StoreError> {
        let Some((dead, attempts, event)) = self.store.dead_letter(id).await? else { return Ok(None) };
        let kept = &dead.delivery;
        let record = Record {
            id: id.to_string(),
            origin: Origin { kind: "bridge".into(), place: kept.service.to_string(), id: kept.event.clone() },
            payload: event.payload.to_vec(),
            headers: Request::from_bytes(&kept.request, &kept.payload)
                .map(|request| request.headers)
                .unwrap_or_default(),
            fault: Fault {
                reason: kept.reason.map_or("unknown", |reason| reason.word()).into(),
                message: dead.error.clone(),
            },
            at: dead.at,
            attempts,
            trace: event.trace,
        };
        Ok(Some((dead, record)))
    }
}

/// The request of today's rule. A filter that would not take the event today is passed over: somebody asks for it.
fn rendered(rule: &crate::domain::rule::Rule, event: &Event) -> Result<Request, Refused> {
    let mut unfiltered = rule.clone();
    unfiltered.filter = None;
    let wrong = |place: String, reason: String| Refused::Wrong(vec![(format!("rule.{place}"), reason)]);
    let program = compile(&unfiltered).map_err(|mistakes| {
        Refused::Wrong(mistakes.into_iter().map(|one| (format!("rule.{}", one.place), one.reason)).collect())
    })?;
    match render(&program, event) {
        Evaluation::Request { request, .. } => Ok(request),
        Evaluation::Unrenderable(mistake) => Err(wrong(mistake.place, mistake.reason)),
        Evaluation::Filtered(_) | Evaluation::OtherKind => {
            Err(wrong("filter".into(), "it does not take the event".into()))
        }
    }
}

fn fingerprint(replay: &Again) -> [u8; 32] {
    Sha256::digest(format!("{} {:?} {}", replay.dead, replay.mode, replay.again)).into()
}
