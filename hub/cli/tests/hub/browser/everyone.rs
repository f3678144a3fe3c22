//! Whether everybody can use the pages: axe-core looks at each of them, in light and in dark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::driver::Browser;
use super::{filling, hub, pages};

/// The one that the pages were held against: others find other things, and are to be looked at before they are used.
const AXE: &str = "axe-core@4.14.0";

/// The source of axe-core, fetched once into the folder for temporary things of the build.
fn axe() -> String {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{AXE}.js"));
    if let Ok(source) = fs::read_to_string(&kept) {
        return source;
    }
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let status = Command::new("npm")
        .args(["install", "--silent", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(folder.path())
        .arg(AXE)
        .status()
        .expect("`npm` can be started; it fetches axe-core, and its Debian package is npm");
    assert!(status.success(), "npm could not fetch {AXE}: {status}");
    let fetched: PathBuf = folder.path().join("node_modules/axe-core/axe.min.js");
    // In one step: another test may want it now.
    fs::rename(fetched, &kept).unwrap();
    fs::read_to_string(kept).unwrap()
}

/// What is serious or critical on the page that is open.
fn found(browser: &Browser, options: &Value) -> Vec<String> {
    let script = "const done = arguments[arguments.length - 1]; axe.run(document, arguments[0]).then(found => done(found.violations), \
         error => done([{impact: 'critical', id: String(error), nodes: []}]))";
    let all = browser.eval_later(script, std::slice::from_ref(options));
    let bad = |one: &&Value| matches!(one["impact"].as_str(), Some("serious" | "critical"));
    let told = |one: &Value| {
        let nodes = one["nodes"].as_array().into_iter().flatten().take(3);
        let nodes: Vec<String> =
            nodes.map(|node| format!("{} {}", node["html"], node["failureSummary"])).collect();
        format!("{}: {} {nodes:#?}", one["id"], one["help"])
    };
    all.as_array().unwrap().iter().filter(bad).map(told).collect()
}

/// Who looks at pages with the eyes of those who see little, or use no mouse.
pub(super) struct Judge {
    axe: String,
    pub(super) bad: Vec<String>,
}

impl Judge {
    pub(super) fn new() -> Self {
        Judge { axe: axe(), bad: Vec::new() }
    }

    /// Looks at the page that is open.
    pub(super) fn look(&mut self, browser: &Browser, what: &str) {
        let all = json!({"resultTypes": ["violations"]});
        // Nothing but the colours is another in the dark.
        let colours = json!({"resultTypes": ["violations"], "runOnly": ["color-contrast"]});
        browser.eval(&self.axe);
        for (scheme, options) in [("light", &all), ("dark", &colours)] {
            browser.prefer(scheme);
            let bad = found(browser, options).into_iter().map(|one| format!("{what} in {scheme}: {one}"));
            self.bad.extend(bad);
        }
    }
}

/// UI-1: no page has anything that axe-core calls serious or critical, in light or in dark; nor has the login, a page that says
/// sorry, or a question that is asked.
#[test]
fn ui_1_no_page_shuts_anybody_out() {
    let (_folder, hub) = hub();
    let filled = filling::a_day(&hub);
    let (browser, mut judge) = (Browser::start(), Judge::new());
    browser.open(&hub.page("/login"));
    judge.look(&browser, "the login");
    browser.as_admin(&hub, "/");
    for (route, path) in pages::all(&filled) {
        browser.open(&hub.page(&path));
        judge.look(&browser, route);
    }
    browser.open(&hub.page("/deadLetters/nothing"));
    judge.look(&browser, "a page that says sorry");
    browser.open(&hub.page(&filled.path("/deadLetters/groups/{group}")));
    browser.click("//button[normalize-space()='Replay group']");
    browser.wait("it asks", "document.querySelector('dialog').open");
    judge.look(&browser, "a question");
    assert!(judge.bad.is_empty(), "{}", judge.bad.join("\n"));
}
