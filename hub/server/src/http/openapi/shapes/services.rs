//! Services and their circuits.

use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, map, may, need, one_of, pattern, shape, shown, switch, text,
    time, word, words, written,
};
use super::Named;
use super::common::{headers, slug};
use super::deliveries::{in_flight, waiting, waits};
use crate::http::services::SHOWN_ONLY;

pub(super) fn shapes() -> Vec<Named> {
    let input = [vec![need("name", slug())], settings(true)].concat_fields();
    let example = json!({
        "name": "billing", "type": "http", "address": "http://127.0.0.1:9000",
        "auth": {"type": "bearer", "secret": "what the service gave you"},
        "policy": {"preset": "critical", "retry": {"max_attempts": 5}},
    });
    let named = || may("name", slug().says("The same as in the path, if at all"));
    let replacement = [vec![named()], settings(true)].concat_fields();
    let change = [vec![named()], settings(false)].concat_fields();
    vec![
        ("ServiceInput", written(input).says("A service as one registers it").like(example)),
        ("ServiceReplacement", written(replacement).like(json!({"address": "https://billing.example.com"}))),
        (
            "ServiceChange",
            written(change)
                .says("What is named is changed, what is not stays; `auth: null` takes it away")
                .like(json!({"paused": true})),
        ),
        ("Service", service()),
        ("Policy", policy()),
        ("AuthInput", auth()),
        ("Auth", auth_shown()),
        ("Probe", probe()),
        ("ProbeResult", probe_result()),
        ("Reason", reason(false).like(json!({"reason": "the peer is back"}))),
        ("ReasonNeeded", reason(true).like(json!({"reason": "maintenance until noon"}))),
        ("Circuit", circuit()),
        ("CircuitMoved", shown(vec![need("state", state().or_null()), need("reason", text())])),
    ]
}

/// Lists of fields, one after the other.
pub(super) trait Concat {
    fn concat_fields(self) -> Vec<Field>;
}

impl<const N: usize> Concat for [Vec<Field>; N] {
    fn concat_fields(self) -> Vec<Field> {
        self.into_iter().flatten().collect()
    }
}

fn settings(whole: bool) -> Vec<Field> {
    let address = pattern("^https?://[^?#]+$").says("Where it is; rules add a path to it");
    vec![
        may("type", word("http").says("There is only `http` so far")),
        if whole { need("address", address) } else { may("address", address) },
        may("auth", shape("AuthInput")),
        may("headers", headers().says("Sent with every request to it")),
        may("policy", shape("Policy")),
        may("paused", switch().says("Whether its deliveries are held").usually(json!(false))),
        may("version", count(0).says("As `If-Match`, which goes before it")),
    ]
    .into_iter()
    .chain(SHOWN_ONLY.map(ignored))
    .collect()
}

/// What is shown can be written back, and this is passed over then.
pub(super) fn ignored(name: &'static str) -> Field {
    may(name, any().says("As it is shown: it is passed over"))
}

fn service() -> Schema {
    let headers = map(text());
    let own = vec![
        need("name", slug()),
        need("type", word("http")),
        need("address", text()),
        need("headers", headers),
        need("policy", shape("Policy")),
        need("paused", switch()),
        need("version", count(1).says("Goes up with every change; also in the header `ETag`")),
        need("auth", shape("Auth").or_null()),
        need("changedAt", time()),
        need("circuit", state().or_null().says("Null if its policy has no breaker")),
        need(
            "warnings",
            list(text()).says(
                "What whoever registered it should know: its address is one that the egress rules forbid",
            ),
        ),
        need("waiting", waiting()),
        need("inFlight", in_flight()),
    ];
    shown([own, waits()].concat_fields())
}

fn policy() -> Schema {
    map(any())
        .says("One instance of the configuration file: see docs/configuration-reference.md. Without it: a timeout of 3 s for each attempt, three attempts, a breaker (5 failures in a row, 30 s), a bulkhead of 20")
        .like(json!({"attempt_timeout": "3s", "breaker": {"consecutive_failures": 5, "cooldown": "30s"}}))
}

fn auth() -> Schema {
    let secret = || need("secret", text().says("It can be written and never read").not_empty());
    let of = |kind: &str, mut fields: Vec<Field>| {
        fields.insert(0, need("type", word(kind)));
        fields.push(secret());
        written(fields)
    };
    one_of(vec![
        of("bearer", vec![]).says("`Authorization: Bearer …`"),
        of("basic", vec![need("username", text())]).says("`Authorization: Basic …`"),
        of("header", vec![need("name", text())]).says("A header with a key in it"),
        of(
            "hmac",
            vec![
                need("header", text()),
                may("prefix", text().says("What stands before the signature, such as `sha256=`")),
                may("encoding", words(&["hex", "base64"]).usually(json!("hex"))),
            ],
        )
        .says("A signature of the body in a header"),
        of(
            "webhook",
            vec![may("formerSecrets", list(text()).says("They sign too, while they are being changed"))],
        )
        .says("Signed by Standard Webhooks"),
        of("oauth2", vec![need("tokenUrl", text()), need("clientId", text()), may("scope", text())])
            .says("A token from a token server"),
    ])
    .says("How the hub shows who it is")
    .like(json!({"type": "bearer", "secret": "what the service gave you"}))
}

fn auth_shown() -> Schema {
    let hidden = || word("…").says("What is secret is never shown");
    shown(vec![
        need("type", words(&["bearer", "basic", "header", "hmac", "webhook", "oauth2", "unreadable"])),
        may("secret", hidden()),
        may("formerSecrets", hidden()),
        may("username", text()),
        may("name", text()),
        may("header", text()),
        may("prefix", text()),
        may("encoding", words(&["hex", "base64"])),
        may("tokenUrl", text()),
        may("clientId", text()),
        may("scope", text().or_null()),
    ])
    .like(json!({"type": "bearer", "secret": "…"}))
}

fn probe() -> Schema {
    written(vec![
        may("method", text().usually(json!("GET"))),
        may("path", pattern("^/").says("Below the address of the service").usually(json!("/"))),
        may("headers", headers()),
        may("body", any().says("Sent as JSON")),
    ])
    .like(json!({"method": "GET", "path": "/health"}))
}

fn probe_result() -> Schema {
    shown(vec![
        need("reached", switch().says("Whether it answered")),
        need("latencyMs", count(0)),
        need("circuit", state().or_null()),
        may("httpStatus", between(100, 999).says("If it answered")),
        may("good", switch().says("Whether the answer is one that a delivery would take for a success")),
        may(
            "fault",
            words(&["business", "io", "timeout", "protocol", "system"])
                .or_null()
                .says("The class of the failure, if it is one"),
        ),
        may("body", text().says("The beginning of the answer; for keys with the scope `admin` only")),
        may("error", text().says("If it did not answer: why; for keys with the scope `admin` only")),
        may("decidedBy", text().says("Which policy ended it")),
    ])
}

fn reason(needed: bool) -> Schema {
    let why = text().says("For whoever looks next, and for the audit log");
    written(vec![if needed {
        need("reason", pattern(r"\S").says("For whoever looks next"))
    } else {
        may("reason", why)
    }])
}

pub(super) fn state() -> Schema {
    words(&["closed", "open", "halfOpen", "forcedOpen", "forcedClosed"])
}

fn circuit() -> Schema {
    let window = shown(vec![need("calls", count(0)), need("failures", count(0)), need("slow", count(0))]);
    let moved = shown(vec![
        need("state", state()),
        need("at", time()),
        need("reason", text().or_null()),
        need("until", time().or_null()),
        need("failedProbes", count(0).says("Of an outage: how many probes have failed since it opened")),
    ]);
    shown(vec![
        need("state", state().or_null().says("Null if its policy has no breaker")),
        may("note", text()),
        may(
            "reason",
            text()
                .or_null()
                .says("Why it stands there: what it opened for, or what the person said who forced it"),
        ),
        may("policy", text().says("Its settings in words")),
        may("opened", count(0)),
        may("refused", count(0)),
        may("window", window.says("What it has counted")),
        may("history", list(moved).says("The newest first")),
        need("guard", text().or_null().says("The whole policy in words, with the values in force")),
    ])
}
