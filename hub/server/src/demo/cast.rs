//! Who plays in the demo: five services that a shop depends on, and the rules and the source that lead to them.

use serde_json::{Value, json};

use super::upstream::Upstream;

/// How a sample service is while nobody has changed its mood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SampleBehavior {
    /// It does what it is asked to.
    Steady,
    /// One of ten answers is a 503.
    Flaky,
    /// It looks at what it is sent, and refuses some of it.
    Picky,
}

/// A part in the play.
#[derive(Debug)]
pub(crate) struct SampleService {
    pub(crate) name: &'static str,
    /// The description for people.
    pub(crate) plays: &'static str,
    pub(super) nature: SampleBehavior,
    /// It takes so long to answer: the least, and the most.
    pub(super) millis: (u64, u64),
}

const fn part(
    name: &'static str,
    nature: SampleBehavior,
    millis: (u64, u64),
    plays: &'static str,
) -> SampleService {
    SampleService { name, plays, nature, millis }
}

/// All sample services.
#[rustfmt::skip]
pub(super) const PARTS: [SampleService; 5] = [
    part("warehouse", SampleBehavior::Steady, (30, 60), "A warehouse: the one to break. Its circuit opens, deliveries wait, nothing is lost."),
    part("payments", SampleBehavior::Steady, (12, 30), "A payment provider: healthy, responds within 30 ms."),
    part("mail", SampleBehavior::Flaky, (30, 60), "A mail relay: one of ten responses is a 503, and a retry succeeds."),
    part("search", SampleBehavior::Steady, (200, 800), "A search index: slow, 200 to 800 ms."),
    part("crm", SampleBehavior::Picky, (30, 80), "A CRM: rejects invalid customers with a 422. These become dead letters."),
];

/// The token of the carrier's webhooks. Nobody else can reach the hub that knows it.
pub(super) const CARRIER_TOKEN: &str = "the-carrier-of-the-demo";

/// As it is registered. What is down is found out after five calls, and looked at again every five seconds.
pub(super) fn service(upstream: &Upstream) -> Value {
    json!({
        "name": upstream.part.name, "address": format!("http://{}", upstream.address),
        "policy": {
            "attempt_timeout": "2s", "breaker": {"consecutive_failures": 5, "cooldown": "5s"},
            "bulkhead": {"max_calls": 20},
        },
    })
}

/// What is tried again is tried soon, so that whoever looks does not have to wait.
fn patience() -> Value {
    json!({"maxAttempts": 12, "base": "500ms", "cap": "5s"})
}

pub(super) fn source() -> Value {
    json!({
        "name": "carrier", "verify": {"type": "bearer", "secrets": [CARRIER_TOKEN]}, "eventType": "shipment.{{ data.status }}",
        "eventId": "{{ data.scan }}",
    })
}

pub(super) fn rules() -> Vec<Value> {
    let mut rules = vec![
        json!({
            "name": "authorise-payments", "eventType": "order.created", "service": "payments", "path": "/authorisations",
            "headers": {"x-order": "{{ data.order }}"},
            "body": {
                "reference": "{{ data.order }}", "amount": "{{ data.total }}", "currency": "{{ data.currency }}",
                "payer": "{{ data.customer.email }}",
            },
        }),
        json!({
            "name": "index-orders", "eventType": "order.created", "service": "search", "method": "PUT",
            "path": "/orders/{{ data.order }}",
            "body": {"customer": "{{ data.customer.name }}", "total": "{{ data.total }}", "lines": "{{ data.lines }}"},
        }),
        json!({
            "name": "big-orders", "eventType": "order.created", "filter": "data.total > 400", "service": "crm",
            "path": "/opportunities", "body": {"order": "{{ data.order }}", "value": "{{ data.total }}"},
        }),
        json!({
            "name": "send-receipts", "eventType": "order.paid", "service": "mail", "path": "/messages",
            "body": {
                "to": "{{ data.customer.email }}", "template": "receipt",
                "subject": "Your order {{ data.order }}, {{ data.total }} {{ data.currency }}",
            },
        }),
        json!({
            "name": "request-shipments", "eventType": "shipment.requested", "service": "warehouse", "path": "/shipments",
            "body": {
                "order": "{{ data.order }}", "speed": "{{ 'express' if data.total > 200 else 'standard' }}",
                "to": "{{ data.customer.name }}, {{ data.customer.country }}", "lines": "{{ data.lines }}",
            },
        }),
        json!({
            "name": "announce-deliveries", "eventType": "shipment.delivered", "service": "mail", "path": "/messages",
            "body": {"template": "delivered", "order": "{{ data.order }}", "tracking": "{{ data.tracking }}"},
        }),
        json!({
            "name": "index-stock", "eventType": "stock.changed", "service": "search", "method": "PUT",
            "path": "/products/{{ data.sku }}", "body": {"title": "{{ data.title }}", "left": "{{ data.left }}"},
        }),
        json!({
            "name": "update-customers", "eventType": "customer.updated", "service": "crm", "method": "PUT",
            "path": "/customers/{{ data.id }}",
            "body": {
                "name": "{{ data.name }}", "email": "{{ data.email }}", "country": "{{ data.country }}",
                "phone": "{{ data.phone }}", "tier": "{{ data.tier }}",
            },
        }),
    ];
    rules.iter_mut().for_each(|rule| rule["delivery"] = patience());
    rules
}
