//! Without a mouse.

use serde_json::{Value, json};

use super::driver::{Browser, ENTER, ESCAPE, TAB};
use super::filling::{only_group, refused};
use super::hub;

/// What has the focus, and whether one can see that.
const FOCUS: &str = "const at = document.activeElement; const style = getComputedStyle(at); \
     return {is: at.innerText?.trim() || at.name || at.tagName, visible: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 \
     || style.boxShadow !== 'none', inside: !!at.closest('dialog'), body: at === document.body, top: at.getBoundingClientRect().top}";

fn focus(browser: &Browser) -> Value {
    browser.eval(FOCUS)
}

/// Presses Tab until something has the focus; everything on the way has to show it.
fn tab_to(browser: &Browser, wanted: &str) -> Vec<String> {
    let mut way = Vec::new();
    for _ in 0..60 {
        browser.press(TAB);
        let at = focus(browser);
        assert!(at["visible"] == true || at["body"] == true, "nobody sees that {at} has the focus");
        way.push(at["is"].as_str().unwrap().to_owned());
        if at["is"] == wanted {
            return way;
        }
    }
    panic!("`{wanted}` is not reached: {way:?}");
}

/// UI-1: Tab leads over the link to the content and the navigation to what can be done, in the order in which it stands there;
/// everything shows its focus. A question is asked in a dialog: Escape takes it back and nothing has happened, Enter in its
/// field means it, and the focus is back where it was or where it can go on.
#[test]
fn ui_1_everything_can_be_done_with_the_keyboard() {
    let (_folder, hub) = hub();
    let _billing = refused(&hub, 3);
    let browser = Browser::start();
    browser.as_admin(&hub, "/");
    browser.open(&hub.page("/deadLetters"));
    let way = tab_to(&browser, "Log out");
    // An entry of the menu may have a count behind its name.
    let find = |name: &str| {
        way.iter().position(|at| at.starts_with(name)).unwrap_or_else(|| panic!("{name}: {way:?}"))
    };
    let order = ["Skip to content", "Seawall", "Overview", "Dead letters", "Settings", "Log out"].map(find);
    assert!(order.is_sorted(), "{way:?}");
    tab_to(&browser, "422 · currency must have three letters");
    browser.press(ENTER);
    browser.wait_for_page("/deadLetters/groups/");

    // The link to the content is the first, and leads past the navigation.
    browser.press(TAB);
    assert_eq!(focus(&browser)["is"], "Skip to content");
    assert!(focus(&browser)["top"].as_f64().unwrap() >= 0.0, "it is in sight while it has the focus");
    browser.press(ENTER);
    let way = tab_to(&browser, "Resolve");
    assert!(!way.iter().any(|at| at == "Overview"), "{way:?}");

    browser.press(ENTER);
    browser.wait("it asks", "document.querySelector('dialog').open");
    assert_eq!(focus(&browser)["is"], "reason");
    for _ in 0..6 {
        browser.press(TAB);
        let at = focus(&browser);
        assert!(at["inside"] == true || at["body"] == true, "the focus leaves the question: {at}");
    }
    browser.press(ESCAPE);
    browser.wait("it is gone", "!document.querySelector('dialog').open");
    assert_eq!(focus(&browser)["is"], "Resolve");
    assert_eq!(only_group(&hub)["state"], "open", "nothing has happened");

    browser.press(ENTER);
    browser.wait("it asks", "document.querySelector('dialog').open");
    for letter in ["d", "o", "n", "e"] {
        browser.press(letter);
    }
    browser.press(ENTER);
    browser.wait("it is done", "document.querySelector('#state .badge').innerText === 'resolved'");
    assert_eq!(only_group(&hub)["state"], "resolved");
    browser.wait("the focus is not lost", "document.activeElement !== document.body");
}

/// UI-1: on a phone the navigation is behind a button, which says whether it is open.
#[test]
fn ui_1_the_navigation_opens_on_a_phone() {
    let (_folder, hub) = hub();
    let browser = Browser::start();
    browser.resize(390, 844, true);
    browser.as_admin(&hub, "/operations");
    let shown = "return [document.querySelector('[data-menu]').getAttribute('aria-expanded'), \
         document.querySelector('#nav').checkVisibility()]";
    assert_eq!(browser.eval(shown), json!(["false", false]));
    browser.click("[data-menu]");
    assert_eq!(browser.eval(shown), json!(["true", true]));
    browser.click("#nav a[href='/deadLetters']");
    browser.wait_for_page("/deadLetters");
}
