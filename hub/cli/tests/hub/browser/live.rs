//! A page that is open follows what happens, and leaves alone what somebody does on it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::driver::Browser;
use super::filling::{only_group, order, refused, send_all};
use super::{GROUPS, LETTERS, Session, hub};
use crate::harness::{Hub, KEY};

/// The script notices if the page is loaded again.
fn stays(browser: &Browser) {
    assert_eq!(browser.eval("return window.here"), true, "the page was loaded again");
}

fn look(browser: &Browser, hub: &Hub, path: &str) {
    browser.open(&hub.page(path));
    browser.eval("window.here = true");
    browser.wait("it is live", "document.querySelector('.live').dataset.state === 'on'");
}

fn one_more(hub: &Hub, id: &str) {
    send_all(hub, &[order(id, 1)]);
}

/// UI-1: what happens shows up on the open page without loading it again, while somebody types a note, who keeps their text,
/// their place in it and the focus.
#[test]
fn ui_1_a_page_is_live_and_does_not_disturb_whoever_types() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 5);
    let browser = Browser::start();
    browser.as_admin(&hub, "/deadLetters");
    look(&browser, &hub, "/deadLetters");
    one_more(&hub, "late-1");
    browser.wait("it is counted", "document.querySelector('#groups td.number').innerText === '6'");
    stays(&browser);

    let group = only_group(&hub)["fingerprint"].as_str().unwrap().to_owned();
    look(&browser, &hub, &format!("/deadLetters/groups/{group}"));
    browser.write("[name=note]", "half a sent");
    browser.eval("document.querySelector('[name=note]').setSelectionRange(4, 6)");
    hub.must("POST", &format!("{GROUPS}/{group}:acknowledge"), &json!({}));
    one_more(&hub, "late-2");
    browser.wait("it is counted", "document.querySelector('#counts .stat b').innerText === '7'");
    browser.wait("it is told", "document.querySelector('#state .badge').innerText === 'acknowledged'");
    let typed = browser.eval(
        "const at = document.activeElement; return [at.name, at.value, at.selectionStart, at.selectionEnd]",
    );
    assert_eq!(typed, json!(["note", "half a sent", 4, 6]));
    browser.write("[name=note]", "");
    browser.eval("document.activeElement.setSelectionRange(99, 99)");
    browser.write("[name=note]", "ence");
    browser.click("//button[normalize-space()='Save note']");
    browser.wait("it is kept", "document.querySelector('.toast')?.innerText === 'Note saved.'");
    stays(&browser);
    assert_eq!(only_group(&hub)["note"], "half a sentence");
}

/// UI-1: what somebody has opened stays open, and what they have chosen stays chosen, when the list changes under their hands.
#[test]
fn ui_1_what_is_open_stays_open_and_what_is_chosen_stays_chosen() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 5);
    let browser = Browser::start();
    browser.as_admin(&hub, "/deadLetters");
    look(&browser, &hub, "/deadLetters/list");
    browser.click("[data-one]");
    browser.click("//tr[3]//input[@data-one]");
    let chosen = "return [...document.querySelectorAll('[data-one]:checked')].map(one => one.value).sort()";
    let before = browser.eval(chosen);
    assert_eq!(before.as_array().unwrap().len(), 2);
    one_more(&hub, "late-1");
    browser.wait("it is there", "document.querySelectorAll('[data-one]').length === 6");
    assert_eq!(browser.eval(chosen), before);
    assert_eq!(browser.text("[data-chosen]").as_deref(), Some("2 selected"));
    assert_eq!(browser.eval("return document.querySelector('[data-some]').disabled"), false);
    stays(&browser);

    let id = before[0].as_str().unwrap();
    look(&browser, &hub, &format!("/deadLetters/{id}"));
    browser.click("#try-1 summary");
    hub.must("POST", &format!("{LETTERS}/{id}:park"), &json!({}));
    browser.wait("it is told", "document.querySelector('#state .badge').innerText === 'parked'");
    assert_eq!(browser.eval("return document.querySelector('#try-1').open"), true);
    stays(&browser);
    let many = json!({"filter": {"ids": [before[1]]}, "reason": "enough"});
    hub.must("POST", &format!("{LETTERS}:delete"), &many);
    browser.open(&hub.page("/operations"));
    browser.wait("it is listed", "document.querySelector('#operations tbody')?.innerText.includes('enough')");
}

/// UI-1: the stream begins with the page as it is, so that what has happened between its loading and the stream, or while the
/// connection was lost, is not missed until something else happens.
#[test]
fn ui_1_a_stream_begins_with_the_page_as_it_is() {
    let (_folder, hub) = hub();
    let said = first_of_stream(&hub, &hub.session(KEY), "/operations");
    assert!(said.contains("event: page\n") && said.contains("No operations yet"), "{said}");
}

/// UI-1, SEC-1: whoever looks at the same page with the same key shares its rendering, and still has forms of their own session.
#[test]
fn sec_1_a_shared_page_has_the_token_of_whoever_looks() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 1);
    let path = format!("/deadLetters/groups/{}", only_group(&hub)["fingerprint"].as_str().unwrap());
    let (one, other) = (hub.session(KEY), hub.session(KEY));
    assert_ne!(one.token, other.token);
    for (mine, theirs) in [(&one, &other), (&other, &one)] {
        let said = first_of_stream(&hub, mine, &path);
        assert!(said.contains(&mine.token) && !said.contains(&theirs.token), "{said}");
    }
}

/// What a stream says first.
fn first_of_stream(hub: &Hub, session: &Session, page: &str) -> String {
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let cookie = &session.cookie;
    let head = format!("GET /live?page={page} HTTP/1.1\r\nhost: hub\r\ncookie: {cookie}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    // A stream that has nothing to say says `: still here`.
    lines
        .take_while(|line| !line.contains("</html>") && !line.starts_with(": "))
        .map(|line| line + "\n")
        .collect()
}

/// UI-1: times are told as people say them, and a page on which nothing has happened is not put in again.
#[test]
fn ui_1_a_quiet_page_is_left_alone() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 2);
    let browser = Browser::start();
    browser.as_admin(&hub, "/deadLetters");
    look(&browser, &hub, "/deadLetters");
    let time = browser.text("#groups time").unwrap();
    assert!(time == "now" || time.ends_with("ago"), "{time}");
    browser.eval(
        "window.changes = 0; window.row = document.querySelector('#groups tr'); new MutationObserver(all => window.changes += all.length)\
         .observe(document.querySelector('#work'), {childList: true, subtree: true})",
    );
    // Something else on the page changes: only that is put in.
    one_more(&hub, "late-1");
    browser.wait("it is counted", "document.querySelector('#groups td.number').innerText === '3'");
    let left: Value = browser.eval("return window.changes");
    assert_eq!(left, 0, "a part that has not changed was put in again");
}
