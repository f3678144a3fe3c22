//! Charts have axes with units, and show their values on hover and on focus.

use serde_json::json;

use super::driver::Browser;
use super::filling::refused;
use super::hub;

/// The keys Home and End, as the protocol names them.
const HOME: &str = "\u{e011}";
const END: &str = "\u{e010}";

/// UI-2: a chart is labelled in local time and with units; the pointer and the arrow keys show the values of a point, also after
/// the page has changed.
#[test]
fn ui_2_a_chart_shows_its_values_on_hover_and_on_focus() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 3);
    let browser = Browser::start();
    browser.as_admin(&hub, "/");
    browser.open(&hub.page("/services/billing"));
    browser.wait_long("there are points", "document.querySelectorAll('[data-points]').length === 3");
    let texts = "return [...document.querySelectorAll('.figure text')].map(text => text.textContent)";
    let texts = browser.eval(texts).to_string();
    assert!(texts.contains(" /s\"") && texts.contains(" ms\""), "{texts}");
    let time = browser.eval("return document.querySelector('[data-at]').textContent");
    let time = time.as_str().unwrap();
    assert!(time.len() >= 5 && time.as_bytes()[2] == b':', "{time}");
    assert_eq!(browser.text("[data-zone]").as_deref(), Some("local time"));

    let readout = "document.querySelector('.readout:not([hidden])')";
    browser.eval("document.querySelector('[data-points]').focus()");
    browser.wait("the focus shows a point", &format!("{readout}?.innerText.includes('delivered: ')"));
    browser.press(HOME);
    let first = browser.text(".readout:not([hidden])").unwrap();
    browser.press(END);
    let last = browser.text(".readout:not([hidden])").unwrap();
    assert!(first.lines().next() < last.lines().next(), "{first} {last}");
    // The next point comes within five seconds, and the focus stays where it is.
    browser.wait(
        "there is one more",
        "JSON.parse(document.querySelector('[data-points]').dataset.points).at.length > 2",
    );
    assert_eq!(browser.eval("return document.activeElement.matches('[data-points]')"), json!(true));
    assert_eq!(browser.eval(&format!("return !!{readout}")), json!(true));

    browser.eval("document.activeElement.blur()");
    assert_eq!(browser.eval(&format!("return !!{readout}")), json!(false));
    let place = "const box = document.querySelectorAll('.axes')[1].getBoundingClientRect(); \
         return [box.left + box.width / 2, box.top + 20]";
    browser.eval("document.querySelectorAll('.axes')[1].scrollIntoView({block: 'center'})");
    let place = browser.eval(place);
    let pointer = json!({"type": "mouseMoved", "x": place[0], "y": place[1]});
    browser.command("Input.dispatchMouseEvent", &pointer);
    browser.wait("the pointer shows a point", &format!("{readout}?.innerText.includes('p95: ')"));
    browser.command("Input.dispatchMouseEvent", &json!({"type": "mouseMoved", "x": 1, "y": 1}));
    browser.wait("and hides it", &format!("!{readout}"));
    assert_eq!(browser.console(), [] as [&str; 0]);
}
