//! How things stand: the whole at a glance, each service, and what happened lately.

use std::collections::{BTreeMap, HashMap};

use seawall_api::{
    self as wire, DeadLetterTotals, DeliveryTotals, EventTotals, History, HistoryQuery, Overview,
    ServiceDeadLetters, ServiceStatusPage, ServiceStatusQuery, ServiceTotals, StatusSort,
};
use seawall_hub_core::domain::delivery::waiting::Wait;
use seawall_hub_core::domain::retention::Retention;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Page, PageRequest};
use seawall_hub_core::service::{ServiceBacklog, StoredBacklog};

use crate::history::{HistoryRange, Point};
use crate::http::access::Caller;
use crate::http::bridge::deliveries::wait_fields;
use crate::http::bridge::events::check_services;
use crate::http::context::RequestContext;
use crate::http::error::ApiError;
use crate::http::input::slug;
use crate::http::ops::attention::attention;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::registry::services::circuit_word;
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;
use seawall_hub_core::domain::time::written as time;

/// A service, and how it stands.
pub(crate) struct ServiceStatus {
    pub(crate) service: Service,
    pub(crate) circuit: Option<&'static str>,
    pub(crate) waiting: u64,
    in_flight: usize,
    pub(crate) wait: Option<Wait>,
    pub(crate) kept: StoredBacklog,
}

/// All that the caller may see, by name.
async fn rows(hub: &Server, caller: &Caller) -> Vec<ServiceStatus> {
    let mut standings: HashMap<Slug, ServiceBacklog> =
        hub.ops.backlogs().await.into_iter().map(|standing| (standing.service.clone(), standing)).collect();
    let services = hub.registry.services().into_iter().filter(|service| caller.sees(&service.name));
    services
        .map(|service| {
            let standing = standings.remove(&service.name);
            let circuit = circuit_word(hub, &service.name);
            let (waiting, in_flight) =
                standing.as_ref().map_or((0, 0), |standing| (standing.waiting, standing.in_flight));
            let wait = standing.as_ref().and_then(|standing| standing.wait);
            let kept = standing.and_then(|standing| standing.kept).unwrap_or_default();
            ServiceStatus { service, circuit, waiting, in_flight, wait, kept }
        })
        .collect()
}

impl ServiceStatus {
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

    fn view(&self, hub: &Server) -> wire::ServiceStatus {
        let ServiceStatus { service, circuit, waiting, in_flight, wait, kept } = self;
        let points = hub.history.points(Some(service.name.as_str()), HistoryRange::Minutes);
        wire::ServiceStatus {
            name: service.name.as_str().into(),
            address: service.address.clone(),
            paused: service.paused,
            circuit: circuit.map(Into::into),
            waiting: *waiting,
            in_flight: *in_flight as u64,
            dead_letters: kept.dead_letters,
            oldest_due_at: kept.due_since.map(|since| since.to_string().into()),
            success_rate: success_rate(&points),
            sends_per_second: per_second(points.last().map(|point| point.sends)),
            sends: points.iter().map(|point| point.sends.into()).collect(),
            wait: wait_fields(*wait, hub.now()),
        }
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
    f64::from(count.unwrap_or(0)) / HistoryRange::Minutes.seconds() as f64
}

const STATES: [&str; 5] = ["closed", "halfOpen", "open", "forcedOpen", "forcedClosed"];

/// Handles `GET …/ops/overview`.
pub(crate) async fn overview(cx: RequestContext) -> ApiResult<Overview> {
    let rows = rows(&cx.hub, &cx.caller).await;
    let all: Vec<&ServiceStatus> = rows.iter().collect();
    let mut by_circuit = BTreeMap::from(STATES.map(|state| (state.to_owned(), 0)));
    for state in rows.iter().map(|row| row.circuit.unwrap_or("none")) {
        *by_circuit.entry(state.to_owned()).or_default() += 1;
    }
    // A key that is for some services sees what these have gone through, and no more.
    let points = if cx.caller.sees_all() {
        cx.hub.history.points(None, HistoryRange::Minutes)
    } else {
        together(&cx.hub, &all)
    };
    let events = cx.caller.sees_all().then(|| EventTotals {
        per_second: per_second(points.last().and_then(|point| point.events)),
        total: cx.hub.metric_store.events_accepted(),
    });
    let due = rows.iter().filter_map(|row| row.kept.due_since).min();
    let dead = rows.iter().filter(|row| row.kept.dead_letters > 0).map(|row| ServiceDeadLetters {
        service: row.service.name.as_str().into(),
        open: row.kept.dead_letters,
    });
    let last = points.last();
    Ok(ApiReply::new(Overview {
        since: cx.hub.history.began().to_string().into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        public_url: Some(cx.hub.alerts.public_url()).filter(|url| !url.is_empty()),
        keeps: keeps(&cx.hub),
        services: ServiceTotals {
            total: rows.len() as u64,
            by_circuit,
            paused: rows.iter().filter(|row| row.service.paused).count() as u64,
        },
        events,
        deliveries: DeliveryTotals {
            per_second: per_second(last.map(|point| point.delivered)),
            sends_per_second: per_second(last.map(|point| point.sends)),
            waiting: rows.iter().map(|row| row.waiting).sum(),
            in_flight: rows.iter().map(|row| row.in_flight as u64).sum(),
            oldest_due_at: due.map(|due| due.to_string().into()),
            oldest_due_seconds: due.map_or(0, |due| cx.hub.now().since(due).as_secs()),
            success_rate: success_rate(&points),
        },
        dead_letters: DeadLetterTotals {
            open: rows.iter().map(|row| row.kept.dead_letters).sum(),
            by_service: dead.collect(),
        },
        attention: attention(&cx.hub, &cx.caller, &rows).await,
    }))
}

/// How long what has ended is kept.
fn keeps(hub: &Server) -> wire::Retention {
    let Retention { delivered, discarded, audit } = hub.ops.retention();
    let time = |duration| time(duration).into();
    wire::Retention { delivered: delivered.map(time), discarded: discarded.map(time), audit: audit.map(time) }
}

/// The last five minutes of these together, without what can't be added up.
fn together(hub: &Server, rows: &[&ServiceStatus]) -> Vec<Point> {
    let mut sum: Vec<Point> = Vec::new();
    for row in rows {
        let points = hub.history.points(Some(row.service.name.as_str()), HistoryRange::Minutes);
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
pub(crate) async fn services(
    cx: RequestContext,
    QueryInput(query): QueryInput<ServiceStatusQuery>,
) -> ApiResult<ServiceStatusPage> {
    let ServiceStatusQuery { service: only, search, circuit, sort, page } = query;
    let search = search.map(|text| text.to_ascii_lowercase());
    let PageRequest { from, size } = page_of(&page);
    let mut rows = rows(&cx.hub, &cx.caller).await;
    rows.retain(|row| {
        let texts = [row.service.name.as_str(), &row.service.address];
        search
            .as_ref()
            .is_none_or(|search| texts.iter().any(|text| text.to_ascii_lowercase().contains(search)))
            && only.as_ref().is_none_or(|only| *only == row.service.name.as_str())
            && circuit.as_ref().is_none_or(|circuit| row.circuit == Some(circuit.as_str()))
    });
    if sort == Some(StatusSort::Trouble) {
        rows.sort_by_key(|row| std::cmp::Reverse(row.trouble()));
    }
    let total = rows.len();
    let from = usize::try_from(from.unwrap_or(0)).unwrap_or(usize::MAX);
    let items: Vec<ServiceStatus> = rows.into_iter().skip(from).take(size).collect();
    let next = from.saturating_add(items.len());
    let page = Page { next: (next < total && !items.is_empty()).then_some(next as u64), items };
    let services = page.items.iter().map(|row| row.view(&cx.hub)).collect();
    let next_page_token = next_token(&page);
    Ok(ApiReply::new(ServiceStatusPage { services, next_page_token, total: total as u64 }))
}

/// Handles `GET …/ops/history?service=NAME&minutes=5`.
pub(crate) async fn history(
    cx: RequestContext,
    QueryInput(query): QueryInput<HistoryQuery>,
) -> ApiResult<History> {
    let span = match query.minutes {
        Some(wire::HistoryRange::Sixty) => HistoryRange::Hour,
        _ => HistoryRange::Minutes,
    };
    let points = match &query.service.as_ref().map(slug) {
        None => {
            check_services(&cx.caller)?;
            cx.hub.history.points(None, span)
        }
        Some(name) if cx.caller.sees(name) && cx.hub.registry.service(name).is_some() => {
            cx.hub.history.points(Some(name.as_str()), span)
        }
        Some(_) => return Err(ApiError::missing("service")),
    };
    let points = points.iter().map(Point::view).collect();
    Ok(ApiReply::new(History { seconds_per_point: span.seconds(), points }))
}
