//! How things stand: the whole at a glance, each service, and what happened lately.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Extension, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::domain::retention::Retention;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::wait::Wait;
use seawall_hub_core::port::store::{Page, PageAt};
use seawall_hub_core::service::{KeptStanding, Standing};
use serde_json::{Map, Value, json};

use super::access::Caller;
use super::alert_rules::time;
use super::attention::attention;
use super::deliveries::shown_wait;
use super::events::of_all;
use super::query::{Query, paged};
use super::reply::{missing, success};
use super::services::{circuit_word, merged};
use super::{Caught, Early};
use crate::history::{Point, Span};
use crate::hub::Hub;

/// A service, and how it stands.
pub(super) struct Row {
    pub(super) service: Service,
    pub(super) circuit: Option<&'static str>,
    pub(super) waiting: u64,
    in_flight: usize,
    pub(super) wait: Option<Wait>,
    pub(super) kept: KeptStanding,
}

/// All that the caller may see, by name.
async fn rows(hub: &Hub, caller: &Caller) -> Vec<Row> {
    let mut standings: HashMap<Slug, Standing> =
        hub.standings().await.into_iter().map(|standing| (standing.service.clone(), standing)).collect();
    let services = hub.services().into_iter().filter(|service| caller.sees(&service.name));
    services
        .map(|service| {
            let standing = standings.remove(&service.name);
            let circuit = circuit_word(hub, &service.name);
            let (waiting, in_flight) =
                standing.as_ref().map_or((0, 0), |standing| (standing.waiting, standing.in_flight));
            let wait = standing.as_ref().and_then(|standing| standing.wait);
            let kept = standing.and_then(|standing| standing.kept).unwrap_or_default();
            Row { service, circuit, waiting, in_flight, wait, kept }
        })
        .collect()
}

impl Row {
    /// How much it needs a look: the most comes first.
    fn trouble(&self) -> (u8, u64) {
        let state = match self.circuit {
            Some("open") => 5,
            Some("forcedOpen") => 4,
            Some("halfOpen") => 3,
            _ if self.service.paused => 2,
            _ if self.kept.dead_letters > 0 || self.kept.due_since.is_some() => 1,
            _ => 0,
        };
        (state, self.waiting + self.kept.dead_letters)
    }

    fn shown(&self, hub: &Hub) -> Value {
        let Row { service, circuit, waiting, in_flight, wait, kept } = self;
        let points = hub.history().points(Some(service.name.as_str()), Span::Minutes);
        let sends: Vec<u32> = points.iter().map(|point| point.sends).collect();
        let shown = json!({
            "name": service.name.as_str(), "address": service.address, "paused": service.paused, "circuit": circuit,
            "waiting": waiting, "inFlight": in_flight, "deadLetters": kept.dead_letters,
            "oldestDueAt": kept.due_since.map(|since| since.to_string()), "successRate": success_rate(&points),
            "sendsPerSecond": per_second(points.last().map(|point| point.sends)), "sends": sends,
        });
        merged(shown, shown_wait(*wait, hub.now()))
    }
}

/// The share of sends that went well; nothing, if there were none.
fn success_rate(points: &[Point]) -> Option<f64> {
    let (sends, errors) = points.iter().fold((0_u64, 0_u64), |(sends, errors), point| {
        (sends + u64::from(point.sends), errors + u64::from(point.errors()))
    });
    let share = |sends: u64| 1.0 - (errors.min(sends) as f64 / sends as f64);
    (sends > 0).then(|| (share(sends) * 10_000.0).round() / 10_000.0)
}

fn per_second(count: Option<u32>) -> f64 {
    f64::from(count.unwrap_or(0)) / Span::Minutes.seconds() as f64
}

const STATES: [&str; 5] = ["closed", "halfOpen", "open", "forcedOpen", "forcedClosed"];

/// `GET …/ops/overview`.
pub(super) async fn overview(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let rows = rows(&hub, &caller).await;
    let all: Vec<&Row> = rows.iter().collect();
    let mut by_circuit: Map<String, Value> =
        STATES.map(|state| (state.to_owned(), json!(0))).into_iter().collect();
    for state in rows.iter().map(|row| row.circuit.unwrap_or("none")) {
        let count = by_circuit.get(state).and_then(Value::as_u64).unwrap_or(0) + 1;
        by_circuit.insert(state.to_owned(), json!(count));
    }
    // A key that is for some services sees what these have gone through, and no more.
    let points =
        if caller.sees_all() { hub.history().points(None, Span::Minutes) } else { together(&hub, &all) };
    let events = caller.sees_all().then(|| {
        let total = crate::numbers::Numbers::of_process().events_accepted();
        json!({"perSecond": per_second(points.last().and_then(|point| point.events)), "total": total})
    });
    let due = rows.iter().filter_map(|row| row.kept.due_since).min();
    let dead: Vec<Value> = rows
        .iter()
        .filter(|row| row.kept.dead_letters > 0)
        .map(|row| json!({"service": row.service.name.as_str(), "open": row.kept.dead_letters}))
        .collect();
    let last = points.last();
    let data = json!({
        "since": hub.history().began().to_string(), "version": env!("CARGO_PKG_VERSION"),
        "publicUrl": Some(hub.public_url()).filter(|url| !url.is_empty()), "keeps": keeps(&hub),
        "services": {
            "total": rows.len(), "byCircuit": by_circuit,
            "paused": rows.iter().filter(|row| row.service.paused).count(),
        },
        "events": events,
        "deliveries": {
            "perSecond": per_second(last.map(|point| point.delivered)),
            "sendsPerSecond": per_second(last.map(|point| point.sends)),
            "waiting": rows.iter().map(|row| row.waiting).sum::<u64>(),
            "inFlight": rows.iter().map(|row| row.in_flight).sum::<usize>(),
            "oldestDueAt": due.map(|due| due.to_string()),
            "oldestDueSeconds": due.map_or(0, |due| hub.now().since(due).as_secs()),
            "successRate": success_rate(&points),
        },
        "deadLetters": {"open": rows.iter().map(|row| row.kept.dead_letters).sum::<u64>(), "byService": dead},
        "attention": attention(&hub, &caller, &rows).await,
    });
    success(StatusCode::OK, &data)
}

/// How long what has ended is kept; null for ever.
fn keeps(hub: &Hub) -> Value {
    let Retention { delivered, discarded, audit } = hub.retention();
    json!({"delivered": delivered.map(time), "discarded": discarded.map(time), "audit": audit.map(time)})
}

/// The last five minutes of these together, without what can't be added up.
fn together(hub: &Hub, rows: &[&Row]) -> Vec<Point> {
    let mut sum: Vec<Point> = Vec::new();
    for row in rows {
        let points = hub.history().points(Some(row.service.name.as_str()), Span::Minutes);
        if sum.is_empty() {
            sum = points;
            continue;
        }
        for (sum, more) in sum.iter_mut().zip(points) {
            sum.sends += more.sends;
            sum.delivered += more.delivered;
            sum.errors.iter_mut().zip(more.errors).for_each(|(sum, more)| *sum += more);
        }
    }
    sum
}

/// `GET …/ops/services`: how each stands, with what its chart needs.
pub(super) async fn services(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let only = query.parsed("service", Slug::new);
    let search = query.text("search").map(|text| text.to_ascii_lowercase());
    let circuit = query.word("circuit", &STATES.map(|state| (state, state)));
    let worst_first = query.word("sort", &[("name", false), ("trouble", true)]).unwrap_or(false);
    let PageAt { from, size } = query.page();
    query.end("service, search, circuit, sort, page_size, page_token")?;
    let mut rows = rows(&hub, &caller).await;
    rows.retain(|row| {
        let texts = [row.service.name.as_str(), &row.service.address];
        search
            .as_ref()
            .is_none_or(|search| texts.iter().any(|text| text.to_ascii_lowercase().contains(search)))
            && only.as_ref().is_none_or(|only| row.service.name == *only)
            && circuit.is_none_or(|circuit| row.circuit == Some(circuit))
    });
    if worst_first {
        rows.sort_by_key(|row| std::cmp::Reverse(row.trouble()));
    }
    let total = rows.len();
    let from = usize::try_from(from.unwrap_or(0)).unwrap_or(usize::MAX);
    let items: Vec<Row> = rows.into_iter().skip(from).take(size).collect();
    let next = from.saturating_add(items.len());
    let page = Page { next: (next < total && !items.is_empty()).then_some(next as u64), items };
    let mut data = paged(&page, "services", |row| row.shown(&hub));
    data["total"] = json!(total);
    Ok(success(StatusCode::OK, &data))
}

/// `GET …/ops/history?service=NAME&minutes=5`.
pub(super) async fn history(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let service = query.parsed("service", Slug::new);
    let span = query.word("minutes", &[("5", Span::Minutes), ("60", Span::Hour)]).unwrap_or(Span::Minutes);
    query.end("service, minutes")?;
    let points = match &service {
        None if !caller.sees_all() => return Err(Early::from(of_all())),
        None => hub.history().points(None, span),
        Some(name) if caller.sees(name) && hub.service(name).is_some() => {
            hub.history().points(Some(name.as_str()), span)
        }
        Some(_) => return Ok(missing("service")),
    };
    let points: Vec<Value> = points.iter().map(Point::shown).collect();
    Ok(success(StatusCode::OK, &json!({"secondsPerPoint": span.seconds(), "points": points})))
}
