//! Presets in the form of a service.

use serde_json::json;

use super::driver::Browser;
use super::{SERVICES, hub};
use crate::peer::Peer;

/// Chooses a preset, as somebody does who clicks.
const CHOOSE: &str = "const select = document.querySelector('[data-preset]'); select.value = arguments[0]; \
     select.dispatchEvent(new Event('change', {bubbles: true}))";

fn value(browser: &Browser, field: &str) -> String {
    let script = "return document.querySelector(`input[name='${arguments[0]}']`).value";
    browser.eval_with(script, &[json!(field)]).as_str().unwrap().to_owned()
}

/// UI-3: a preset that is chosen fills in the fields that nobody has written in, so that it is what the service gets; what somebody
/// wrote stays.
#[test]
fn ui_3_a_preset_fills_in_what_nobody_has_written() {
    let ((_folder, hub), peer) = (hub(), Peer::start());
    let browser = Browser::start();
    browser.as_admin(&hub, "/services/_new");
    browser.write("[name=name]", "billing");
    browser.write("[name=address]", &peer.address);
    let (failures, cooldown) = ("policy.breaker.consecutive_failures:number", "policy.breaker.cooldown");
    assert_eq!((&*value(&browser, failures), &*value(&browser, cooldown)), ("5", "30s"));
    browser.eval_with(CHOOSE, &[json!("development")]);
    assert_eq!((&*value(&browser, failures), &*value(&browser, cooldown)), ("3", "10s"));
    let own = "input[name='policy.breaker.cooldown']";
    browser.clear(own);
    browser.write(own, "7s");
    browser.eval_with(CHOOSE, &[json!("critical")]);
    assert_eq!((&*value(&browser, failures), &*value(&browser, cooldown)), ("20", "7s"));
    browser.click("form[data-act] button.primary");
    browser.wait_for_page("/services/billing");
    let policy = hub.get(&format!("{SERVICES}/billing"))["policy"].clone();
    let breaker = json!({"consecutive_failures": 20, "cooldown": "7s"});
    assert_eq!((&policy["preset"], &policy["breaker"]), (&json!("critical"), &breaker), "{policy}");
    assert_eq!(policy["retry"]["max_attempts"], 6, "{policy}");

    // Without a script there is a link for each.
    let session = hub.session(crate::harness::KEY);
    let page = hub.call("GET", "/services/_new?preset=development", &[("cookie", &session.cookie)], "").text;
    let named = format!("name=\"{cooldown}\"");
    let field = page.split("<input").find(|input| input.contains(&named)).unwrap();
    assert!(field.contains("value=\"10s\"") && page.contains("/services/_new?preset=critical"), "{field}");
}
