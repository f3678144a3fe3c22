//! The story of somebody who finds many dead letters in the morning.

use serde_json::json;

use super::driver::Browser;
use super::filling::{invoice, only_group, refused};
use super::{OPERATIONS, hub};

const LETTERS: u32 = 300;
/// Nobody should need more.
const CLICKS_MAX: u32 = 7;

/// UI-1, UI-3, HUB-6: a bad rule has made 300 dead letters of one group. With fewer than eight clicks somebody finds the group,
/// reads one of them with what was sent and what came back, mends the rule, replays all behind a canary, and watches the number
/// fall to none without loading the page again; then the work is done and the group is resolved.
#[test]
fn ui_3_a_group_is_found_mended_and_replayed_with_a_few_clicks() {
    let (_folder, hub) = hub();
    let billing = refused(&hub, LETTERS);
    let browser = Browser::start();
    browser.as_admin(&hub, "/");

    browser.click("nav a[href='/deadLetters']");
    browser.click("#groups tbody a");
    browser.wait_for_page("/deadLetters/groups/");
    assert_eq!(browser.text("#counts .stat b").as_deref(), Some("300"));
    // One of them is there without a click.
    let read = browser.text("main").unwrap();
    for part in ["currency must have three letters", "\"currency\": \"EURO\"", "POST"] {
        assert!(read.contains(part), "{part} is missing in: {read}");
    }
    mend_the_rule(&browser);

    browser.click("//button[normalize-space()='Replay group']");
    browser.write("dialog[open] [name=reason]", "the currency has three letters now");
    browser.click("dialog[open] [data-yes]");
    browser.wait_for_page("/operations/");
    let operation = browser.at().rsplit('/').next().unwrap().to_owned();
    browser.click("//a[normalize-space()='Open group']");
    browser.wait_for_page("/deadLetters/groups/");
    let clicks = browser.clicks();
    assert!(clicks <= CLICKS_MAX, "{clicks} clicks");

    let seen = "window.seen = []; setInterval(() => { const now = document.querySelector('#counts .stat b').textContent; \
         if (window.seen.at(-1) !== now) window.seen.push(now); }, 20)";
    browser.eval(seen);
    browser.wait("none is open", "window.seen.at(-1) === '0'");
    let seen = browser.eval("return window.seen");
    let fell: Vec<u32> =
        seen.as_array().unwrap().iter().map(|n| n.as_str().unwrap().parse().unwrap()).collect();
    assert!(fell.len() > 2 && fell.is_sorted_by(|a, b| a > b), "it falls step by step: {fell:?}");
    browser.wait("it is resolved", "document.querySelector('#state .badge').innerText === 'resolved'");
    assert_eq!(browser.console(), [] as [&str; 0]);

    browser.open(&hub.page(&format!("/operations/{operation}")));
    browser.wait("it is done", "document.querySelector('#state .badge').innerText === 'done'");
    let done = hub.get(&format!("{OPERATIONS}/{operation}"));
    assert_eq!(
        (&done["state"], &done["progress"]["delivered"], &done["reason"]),
        (&json!("done"), &json!(LETTERS), &json!("the currency has three letters now"))
    );
    assert_eq!(only_group(&hub)["counts"]["open"], 0);
    assert_eq!(billing.arrived().len(), LETTERS as usize);
    assert!(billing.arrived().values().all(|times| *times == 1), "each once");
}

/// Mends the rule with a real event beside it, and is back at the group.
fn mend_the_rule(browser: &Browser) {
    browser.click("//a[normalize-space()='edit the rule']");
    browser.wait_for_page("/rules/invoices/edit");
    browser.clear("[name='body:json']");
    browser.write("[name='body:json']", &invoice("EUR").to_string());
    browser.wait(
        "its request is shown",
        "document.querySelector('#preview').innerText.includes('\"currency\": \"EUR\"')",
    );
    browser.click("//button[normalize-space()='Save as new version']");
    browser.wait_for_page("/deadLetters/groups/");
}
