//! The page of a demo, which no other hub has.

use super::driver::Browser;
use super::everyone::Judge;
use super::{pages, pictures};
use crate::demo::Demo;

/// UI-2: the page of a demo opens cleanly, fits, and shuts nobody out; a switch on it breaks a sample service at a click.
#[test]
fn ui_2_the_page_of_a_demo_opens_cleanly_and_breaks_a_service_at_a_click() {
    let demo = Demo::start(&["--no-story"]);
    let (browser, mut judge) = (Browser::start(), Judge::new());
    browser.log_in(&demo.hub, &demo.key, "/demo");
    assert_eq!((browser.count("h1"), browser.count("main.sorry")), (1, 0));
    let faults = pages::faults(&browser, &demo.hub);
    assert!(faults.is_empty(), "{faults:?}");
    browser.click("//div[@id='switch-warehouse']//button[contains(., 'Break')]");
    browser
        .wait("its circuit opens", "document.querySelector('#state-warehouse .badge').innerText === 'open'");
    let wide = pictures::look(&browser, "/demo");
    assert!(wide.is_empty(), "{wide:?}");
    judge.look(&browser, "/demo");
    assert!(judge.bad.is_empty(), "{}", judge.bad.join("\n"));
    if pictures::wanted().is_some() {
        browser.resize(1_280, 900, false);
        browser.open(&demo.hub.page("/"));
        // Charts begin to say something with a few points, which are ten seconds apart.
        browser.wait_long("there are charts", "document.querySelector('.chart .line')?.points.length >= 6");
        pictures::look(&browser, "/demo-overview");
    }
}
