//! Alerts: incidents, rules and channels.

use seawall_hub_core::domain::alert::Kind;
use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, may_say, need, number, one_of, shape, shown, switch, text,
    time, word, words, written,
};
use super::Named;
use super::bridge::page;
use super::common::{duration, slug};

pub(super) fn shapes() -> Vec<Named> {
    let mute = vec![
        may("for", duration()),
        may("until", time().says("In place of `for`")),
        need("reason", text().not_empty()),
    ];
    let tested = shown(vec![
        need("message", text().says("The id of the message")),
        need("sent", switch()),
        need("said", text().says("What the other side said, or why it did not arrive")),
        need("tookMs", count(0)),
    ]);
    let deleted = shown(vec![
        need("name", slug()),
        need("deleted", switch()),
        need("reset", switch().says("It came with the hub, and is as it came")),
    ]);
    vec![
        ("Alert", alert()),
        ("AlertPage", page("alerts", shape("Alert"))),
        ("MuteInput", written(mute).like(json!({"for": "2h", "reason": "their migration"}))),
        ("AlertRule", rule()),
        (
            "AlertRuleInput",
            written(rule_fields(may("kind", kinds()))).like(json!({"kind": "deadLetters", "moreThan": 50})),
        ),
        ("AlertRuleChange", written(rule_fields(may("kind", kinds()))).like(json!({"moreThan": 50}))),
        ("AlertRuleDeleted", deleted),
        ("AlertChannel", channel()),
        ("AlertChannelInput", channel_input()),
        ("AlertChannelChange", written(channel_change()).like(json!({"to": ["duty@example.com"]}))),
        ("AlertChannelTested", tested),
    ]
}

fn kinds() -> Schema {
    words(&Kind::ALL.map(Kind::word)).says("May be left out for a rule that came with the hub")
}

fn severity() -> Schema {
    words(&["warning", "critical"])
}

fn muted() -> Schema {
    shown(vec![need("until", time()), need("reason", text())]).or_null()
}

fn alert() -> Schema {
    let seen = shown(vec![need("by", text()), need("at", time()), need("reason", text().or_null())]);
    let notice = shown(vec![
        need("channel", slug()),
        need("about", words(&["opened", "resolved"])),
        need("state", words(&["waiting", "sent", "dropped"])),
        need("tries", count(0)),
        need("sentAt", time().or_null()),
        need("nextTryAt", time().or_null()),
        need("error", text().or_null()),
    ]);
    shown(vec![
        need("id", text()),
        need("rule", slug()),
        need("kind", words(&Kind::ALL.map(Kind::word))),
        need("severity", severity()),
        need("service", slug().or_null().says("Null if it is about the hub itself")),
        need("state", words(&["open", "resolved"])),
        need("summary", text().says("For people")),
        need("value", number().says("The number that was looked at")),
        need("openedAt", time()),
        need("updatedAt", time()),
        need("resolvedAt", time().or_null()),
        need("resolvedBecause", text().or_null()),
        need("acknowledged", seen.or_null()),
        need("muted", muted()),
        need("link", text().says("Where people see more")),
        need("notifications", list(notice).says("Who was told")),
    ])
}

fn rule_fields(kind: Field) -> Vec<Field> {
    let mute =
        written(vec![may("for", duration()), may("until", time()), need("reason", text().not_empty())]);
    vec![
        may("name", slug()),
        kind,
        may("enabled", switch()),
        may("severity", severity()),
        may("services", list(slug()).says("It is about these only; null for all")),
        may("channels", list(slug()).says("These are told beside the log; null for all that there are")),
        may("for", duration().says("It has to be bad for so long before anybody is told")),
        may("resolveAfter", duration().says("It has to be fine for so long before anybody is told")),
        may("muted", mute),
        may("moreThan", between(0, u64::from(u32::MAX)).says("Of `deadLetters`, `warnings` and `errors`")),
        may("window", duration().says("Of `deadLetters`, `warnings` and `errors`")),
        may("olderThan", duration().says("Of `oldestDue`")),
        may("freeBytesBelow", between(0, 1 << 60).says("Of `dataLossRisk`")),
        may("version", count(0).says("As it is shown; passed over")),
        may("builtIn", switch().says("As it is shown; passed over")),
        may("changedAt", time().says("As it is shown; passed over")),
    ]
}

fn rule() -> Schema {
    shown(vec![
        need("name", slug()),
        need("kind", words(&Kind::ALL.map(Kind::word))),
        need("enabled", switch()),
        need("severity", severity()),
        need("services", list(slug()).or_null()),
        need("channels", list(slug()).or_null()),
        need("for", duration()),
        need("resolveAfter", duration()),
        need("muted", muted()),
        may_say("moreThan", count(0)),
        may_say("window", duration()),
        may_say("olderThan", duration()),
        may_say("freeBytesBelow", count(0)),
        need("version", count(0).says("0 if nobody has changed it; also in the header `ETag`")),
        need("builtIn", switch().says("It came with the hub")),
        need("changedAt", time().or_null()),
    ])
}

fn address() -> Schema {
    text().not_empty().says("Like `duty@example.com`")
}

fn channel_change() -> Vec<Field> {
    vec![
        may("name", slug()),
        may("type", words(&["webhook", "email"])),
        may("url", text()),
        may("secret", text().says("`whsec_` and base 64: signs it by Standard Webhooks")),
        may("host", text()),
        may("port", between(1, 65_535)),
        may("tls", words(&["starttls", "implicit", "none"])),
        may("username", text()),
        may("password", text()),
        may("from", address()),
        may("to", list(address()).some().at_most(50)),
        may("ca", text().says("An authority of one's own, in PEM")),
        may("version", count(0).says("As it is shown; passed over")),
        may("changedAt", any().says("As it is shown; passed over")),
    ]
}

fn channel_input() -> Schema {
    let shown_only = || {
        vec![
            may("version", count(0).says("As it is shown; passed over")),
            may("changedAt", any().says("As it is shown; passed over")),
        ]
    };
    let mut hook = vec![
        may("name", slug()),
        need("type", word("webhook")),
        need("url", text().not_empty()),
        may("secret", text().says("`whsec_` and base 64: signs it by Standard Webhooks")),
    ];
    hook.extend(shown_only());
    let mut email = vec![
        may("name", slug()),
        need("type", word("email")),
        need("host", text().not_empty()),
        may("port", between(1, 65_535).says("587, 465 or 25, as `tls` says")),
        may("tls", words(&["starttls", "implicit", "none"]).usually(json!("starttls"))),
        may("username", text()),
        may("password", text()),
        need("from", address()),
        need("to", list(address()).some().at_most(50)),
        may("ca", text().says("An authority of one's own, in PEM, believed beside the public ones")),
    ];
    email.extend(shown_only());
    one_of(vec![written(hook), written(email)])
        .says("Where messages go")
        .like(json!({"type": "webhook", "url": "https://example.com/alerts"}))
}

fn channel() -> Schema {
    shown(vec![
        need("name", slug()),
        need("type", words(&["log", "webhook", "email"]).or_null()),
        need("version", count(0)),
        need("changedAt", time().or_null()),
        may_say("url", text().says("Without its path: that is often all that is secret about it")),
        may_say("secret", text().or_null().says("`…` if there is one")),
        may_say("host", text()),
        may_say("port", between(1, 65_535)),
        may_say("tls", words(&["starttls", "implicit", "none"])),
        may_say("username", text().or_null()),
        may_say("password", text().or_null().says("`…` if there is one")),
        may_say("from", text()),
        may_say("to", list(text())),
        may_say("ca", text().or_null()),
    ])
}
