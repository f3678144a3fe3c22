//! The shapes of notification channels, written by hand.

use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, may_say, need, one_of, shown, switch, text, time, word,
    words, written,
};
use super::NamedSchema;
use super::common::slug;

pub(super) fn shapes() -> Vec<NamedSchema> {
    let tested = shown(vec![
        need("message", text().says("Message id")),
        need("sent", switch()),
        need("said", text().says("Response of the receiver, or the error")),
        need("tookMs", count(0)),
    ]);
    vec![
        ("AlertChannel", channel()),
        ("AlertChannelInput", channel_input()),
        ("AlertChannelChange", written(channel_change()).like(json!({"to": ["duty@example.com"]}))),
        ("AlertChannelTested", tested),
    ]
}

fn address() -> Schema {
    text().not_empty().says("Email address, such as `duty@example.com`")
}

fn channel_change() -> Vec<Field> {
    vec![
        may("name", slug()),
        may("type", words(&["webhook", "email"])),
        may("url", text()),
        may("secret", text().says("Signing secret of Standard Webhooks: `whsec_` and base64")),
        may("host", text()),
        may("port", between(1, 65_535)),
        may("tls", words(&["starttls", "implicit", "none"])),
        may("username", text()),
        may("password", text()),
        may("from", address()),
        may("to", list(address()).some().at_most(50)),
        may("ca", text().says("Custom certificate authority in PEM")),
        may("version", count(0).says("Read-only; ignored")),
        may("changedAt", any().says("Read-only; ignored")),
    ]
}

fn channel_input() -> Schema {
    let shown_only = || {
        vec![
            may("version", count(0).says("Read-only; ignored")),
            may("changedAt", any().says("Read-only; ignored")),
        ]
    };
    let mut hook = vec![
        may("name", slug()),
        need("type", word("webhook")),
        need("url", text().not_empty()),
        may("secret", text().says("Signing secret of Standard Webhooks: `whsec_` and base64")),
    ];
    hook.extend(shown_only());
    let mut email = vec![
        may("name", slug()),
        need("type", word("email")),
        need("host", text().not_empty()),
        may("port", between(1, 65_535).says("Default 587, 465 or 25, depending on `tls`")),
        may("tls", words(&["starttls", "implicit", "none"]).usually(json!("starttls"))),
        may("username", text()),
        may("password", text()),
        need("from", address()),
        need("to", list(address()).some().at_most(50)),
        may("ca", text().says("Custom certificate authority in PEM, trusted beside the public ones")),
    ];
    email.extend(shown_only());
    one_of(vec![written(hook), written(email)])
        .says("A notification channel")
        .like(json!({"type": "webhook", "url": "https://example.com/alerts"}))
}

fn channel() -> Schema {
    shown(vec![
        need("name", slug()),
        need("type", words(&["log", "webhook", "email"]).or_null()),
        need("version", count(0)),
        need("changedAt", time().or_null()),
        may_say("url", text().says("Without its path, which often contains a secret")),
        may_say("secret", text().or_null().says("`…` if it is set")),
        may_say("host", text()),
        may_say("port", between(1, 65_535)),
        may_say("tls", words(&["starttls", "implicit", "none"])),
        may_say("username", text().or_null()),
        may_say("password", text().or_null().says("`…` if it is set")),
        may_say("from", text()),
        may_say("to", list(text())),
        may_say("ca", text().or_null()),
    ])
}
