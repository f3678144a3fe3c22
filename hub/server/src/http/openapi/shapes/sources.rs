//! Sources of webhooks, and keys.

use serde_json::json;

use super::super::schema::{
    Field, Schema, count, list, may, may_say, need, one_of, shape, shown, switch, text, time, word, words,
    written,
};
use super::Named;
use super::common::{duration, slug};
use super::services::Concat as _;
use seawall_hub_core::domain::key::Scope;

pub(super) fn shapes() -> Vec<Named> {
    let example = json!({
        "name": "github", "verify": {"type": "github", "secrets": ["what GitHub has too"]},
        "eventType": "github.{{ headers['x-github-event'] }}",
    });
    vec![
        ("SourceInput", written([vec![need("name", slug())], settings()].concat_fields()).like(example)),
        (
            "SourceReplacement",
            written(
                [vec![may("name", slug().says("The same as in the path, if at all"))], settings()]
                    .concat_fields(),
            )
            .like(json!({"eventType": "shop.event"})),
        ),
        ("Verify", verify()),
        ("Source", source()),
        ("KeyInput", key_input()),
        ("Key", shown(key())),
        ("FreshKey", shown([key(), vec![need("key", text().says("It is shown this once"))]].concat_fields())),
        (
            "RotateInput",
            written(vec![may(
                "grace",
                duration().says("How long the key before is good too").usually(json!("1h")),
            )])
            .like(json!({"grace": "1h"})),
        ),
    ]
}

fn settings() -> Vec<Field> {
    vec![
        may("verify", shape("Verify").says("Must be there when it is new; what is secret can't be read back, so without it the one before stays")),
        need("eventType", text().not_empty().says("The type of its events: a template over `headers` and `data`")),
        may("eventId", text().says("The id of its events: a template. Without it what the sender calls it, or a hash of the body")),
        may("enabled", switch().usually(json!(true))),
    ]
}

fn verify() -> Schema {
    let secrets = || {
        need(
            "secrets",
            list(text().not_empty())
                .some()
                .says("Several while they are being changed; one that fits is enough"),
        )
    };
    let of = |kind: Schema, fields: Vec<Field>| {
        written([vec![need("type", kind), secrets()], fields].concat_fields())
    };
    one_of(vec![
        of(words(&["bearer", "standard-webhooks", "github", "stripe", "slack"]), vec![]),
        of(
            word("hmac"),
            vec![
                need("header", text().not_empty().says("Which header has the signature")),
                may("prefix", text().says("What stands before the signature, such as `sha256=`")),
                may("encoding", words(&["hex", "base64"]).usually(json!("hex"))),
            ],
        ),
    ])
    .says("How its webhooks show where they come from")
    .like(json!({"type": "hmac", "header": "x-signature", "secrets": ["what both know"]}))
}

fn source() -> Schema {
    let verify = shown(vec![
        need("secrets", list(word("…")).says("As many as there are; what is secret is never shown")),
        may("type", text()),
        may("header", text().or_null()),
        may("prefix", text().or_null()),
        may("encoding", text().or_null()),
    ]);
    shown(vec![
        need("name", slug()),
        need("version", count(1).says("Goes up with every change; also in the header `ETag`")),
        need("verify", verify),
        need("eventType", text().not_empty()),
        need("eventId", text().or_null()),
        need("enabled", switch()),
        need("changedAt", time()),
        need("path", text().says("Where its webhooks go")),
    ])
}

fn scopes() -> Schema {
    list(words(&Scope::ALL.map(Scope::word))).says("`admin` may do everything, `operate` may read too")
}

fn key_input() -> Schema {
    written(vec![
        need("name", slug()),
        need("scopes", scopes().some()),
        may_say(
            "services",
            list(slug()).some().says("It is for these only; without it for all. Not with `admin`"),
        ),
        may_say(
            "sources",
            list(text())
                .some()
                .says("Events come with it from these only; without it from all. Not with `admin`"),
        ),
        may("expiresIn", duration()),
    ])
    .like(json!({"name": "shop", "scopes": ["ingest"], "sources": ["shop"], "expiresIn": "90d"}))
}

fn key() -> Vec<Field> {
    vec![
        need("name", slug()),
        need("scopes", scopes()),
        need("services", list(slug()).or_null()),
        need("sources", list(text()).or_null()),
        need("madeAt", time()),
        need("expiresAt", time().or_null()),
        need("revokedAt", time().or_null()),
        need("formerUntil", time().or_null().says("Until when the key before it was rotated is good")),
    ]
}
