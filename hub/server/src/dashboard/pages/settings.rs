//! What this hub is, and what is done to it as a whole: keys, the audit log, the key of all secrets, a backup.

use minijinja::context;
use seawall_api::KeySpec;
use serde_json::{Value, json};

use crate::dashboard::PageResult;
use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::form::KEY;
use crate::dashboard::show::encoded;

/// The page `GET /settings`.
pub(super) async fn page(page: PageContext) -> PageResult {
    page.page("settings.html", context! { overview => page.view("/api/v1/ops/overview").await? }).await
}

/// `GET /settings/metrics`: the text that Prometheus reads, for whoever is logged in.
pub(super) async fn metrics(page: PageContext) -> PageResult {
    page.dashboard.pass(&page.session, "/metrics").await
}

/// `GET /keys`, for whoever may make some.
pub(super) async fn keys(page: PageContext) -> PageResult {
    if !page.session.is_admin() {
        return page.page("keys.html", context! {}).await;
    }
    let mut keys = page.get("/api/v1/registry/keys").await?;
    let now = page.dashboard.hub.now().to_string();
    for key in keys.as_array_mut().into_iter().flatten() {
        // Times are written so that the later one is also the larger text.
        let is_over = |name: &str| key[name].as_str().is_some_and(|until| *until <= *now);
        let state = match (key["revokedAt"].is_null(), is_over("expiresAt")) {
            (false, _) => "revoked",
            (true, true) => "expired",
            (true, false) => "good",
        };
        if is_over("formerUntil") {
            key["formerUntil"] = Value::Null;
        }
        key["state"] = json!(state);
    }
    let mut form = KEY.create::<KeySpec>(&Value::Null, &[]);
    (form.to, form.cancel) = ("/keys".into(), String::new());
    page.page("keys.html", context! { keys => view(&keys), form => form.view() }).await
}

/// `GET /audit`, for whoever may see it.
pub(super) async fn audit(page: PageContext) -> PageResult {
    if !page.session.is_admin() {
        return page.page("audit.html", context! {}).await;
    }
    let path = page.query.over("/api/v1/ops/audit?page_size=50", &["page_token"]);
    let (mut log, wrong) = page.filtered(&path).await?;
    for entry in log["entries"].as_array_mut().into_iter().flatten() {
        let said = |name: &str| entry[name].as_str().unwrap_or_default();
        entry["page"] = json!(page_of(said("action"), said("target")));
    }
    let further = page.query.get("page_token").is_some();
    page.page("audit.html", context! { page => view(&log), wrong, further }).await
}

/// Where to look at what was changed, unless it is gone.
fn page_of(action: &str, target: &str) -> Option<String> {
    let (kind, verb) = action.split_once('.')?;
    let folder = match kind {
        "service" | "circuit" => "/services",
        "rule" => "/rules",
        "source" => "/sources",
        "alert" => "/alerts",
        "alertRule" => "/alerts/rules",
        "alertChannel" => "/alerts/channels",
        "deadLetter" if verb != "purge" => "/deadLetters",
        "deadLetterGroup" => "/deadLetters/groups",
        "operation" => "/operations",
        "deadLetters" => return Some("/operations".into()),
        "key" => return Some("/keys".into()),
        _ => return None,
    };
    if verb == "delete" && kind != "deadLetter" {
        return None;
    }
    // A circuit's is its service and the state that it was moved to.
    let name = if kind == "circuit" { target.split(' ').next()? } else { target };
    Some(format!("{folder}/{}", encoded(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: what stands in the audit log leads to what was changed, unless that is gone.
    #[test]
    fn ui_2_the_audit_log_leads_to_what_was_changed() {
        for (action, target, page) in [
            ("service.change", "billing", Some("/services/billing")),
            ("service.delete", "billing", None),
            ("circuit.move", "billing forcedOpen", Some("/services/billing")),
            ("rule.create", "invoices", Some("/rules/invoices")),
            ("alert.mute", "inc_1", Some("/alerts/inc_1")),
            ("alertRule.reset", "warnings", Some("/alerts/rules/warnings")),
            ("alertChannel.delete", "duty", None),
            ("key.revoke", "old", Some("/keys")),
            ("deadLetter.delete", "dlv_1", Some("/deadLetters/dlv_1")),
            ("deadLetter.purge", "dlv_1", None),
            ("deadLetterGroup.resolve", "a/b", Some("/deadLetters/groups/a%2Fb")),
            ("deadLetters.begin", "replay", Some("/operations")),
            ("operation.pause", "op_1", Some("/operations/op_1")),
            ("secrets.rotate", "2", None),
            ("nonsense", "x", None),
        ] {
            assert_eq!(page_of(action, target).as_deref(), page, "{action}");
        }
    }
}
