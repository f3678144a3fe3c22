//! How the pages look: in light, in dark and on a phone.

use std::fs;
use std::path::PathBuf;

use super::driver::Browser;
use super::{filling, hub, pages};

/// Where pictures go, if somebody wants them: `cargo xtask screenshots` says so.
const VARIABLE: &str = "SEAWALL_SCREENSHOTS";

pub(super) fn wanted() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// Its name, what the system says, a width and a height.
const LOOKS: [(&str, &str, u32, u32); 3] =
    [("light", "light", 1_280, 900), ("dark", "dark", 1_280, 900), ("phone", "light", 390, 844)];

/// `/deadLetters/groups/{group}` is `deadLetters-groups-group`.
fn name(route: &str) -> String {
    let name = route.trim_matches('/').replace(['{', '}'], "").replace('/', "-");
    if name.is_empty() { "overview".into() } else { name }
}

/// Looks at the page that is open in every way; with the variable, it keeps what it sees. What does not fit is the answer.
pub(super) fn look(browser: &Browser, what: &str) -> Vec<String> {
    let out = wanted();
    let mut wide = Vec::new();
    for (look, scheme, width, height) in LOOKS {
        browser.prefer(scheme);
        browser.resize(width, height, look == "phone");
        let needed = browser.eval("return document.documentElement.scrollWidth");
        if needed.as_u64() > Some(u64::from(width)) {
            wide.push(format!("{what} ({look}) is {needed} wide"));
        }
        let light =
            "return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g)[0] > 128";
        assert_eq!(browser.eval(light), scheme == "light", "{what} ({look})");
        let Some(out) = &out else { continue };
        fs::create_dir_all(out).unwrap();
        // What was put in just now has its place by then.
        browser.eval_later("requestAnimationFrame(() => setTimeout(arguments[0], 50))", &[]);
        fs::write(out.join(format!("{}.{look}.png", name(what))), browser.picture()).unwrap();
    }
    wide
}

/// UI-1: every page fits a screen and a phone: nothing but a table inside it is to be moved sideways. Light and dark are as the
/// system of whoever looks says, until they choose.
#[test]
fn ui_1_every_page_fits_a_screen_and_a_phone() {
    let (_folder, hub) = hub();
    let filled = filling::a_day(&hub);
    let browser = Browser::start();
    browser.open(&hub.page("/login"));
    let mut wide = look(&browser, "/login");
    browser.as_admin(&hub, "/");
    for (route, path) in pages::all(&filled) {
        browser.open(&hub.page(&path));
        if browser.count("main [data-live]") > 0 {
            browser.wait("it is live", "document.querySelector('.live').dataset.state === 'on'");
        }
        if browser.count("#preview") > 0 {
            let made = "!document.querySelector('#preview .hint') || !document.querySelector('[name=eventType]').value";
            browser.wait("the request of a rule is made", made);
        }
        wide.extend(look(&browser, route));
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

/// UI-1: who chooses light or dark has it so on every page, whatever the system says.
#[test]
fn ui_1_a_chosen_theme_stays_chosen() {
    let (_folder, hub) = hub();
    let browser = Browser::start();
    browser.prefer("light");
    browser.as_admin(&hub, "/operations");
    let theme = "return document.documentElement.dataset.theme ?? null";
    assert!(browser.eval(theme).is_null());
    browser.click("button[data-theme]");
    assert_eq!(browser.eval(theme), "dark");
    browser.open(&hub.page("/deadLetters"));
    assert_eq!(browser.eval(theme), "dark");
    browser.click("button[data-theme]");
    assert_eq!(browser.eval(theme), "light");
}
