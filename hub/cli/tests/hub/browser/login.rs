//! Who gets in, and who is out.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::driver::Browser;
use super::{KEYS, filling, hub};
use crate::harness::{KEY, header};

/// UI-1, SEC-1: a wrong key is told so and is not in; a good one leads to the page that was asked for; logging out ends the
/// session. The cookie is out of reach of scripts and of other sites.
#[test]
fn sec_1_a_key_opens_the_pages_until_somebody_logs_out() {
    let (_folder, hub) = hub();
    let browser = Browser::start();
    browser.open(&hub.page("/operations"));
    assert_eq!(browser.at(), "/login?to=%2Foperations");
    browser.write("[name=key]", "no-such-key-anywhere");
    browser.click("form button");
    browser.wait("it says so", "document.querySelector('[role=alert]')?.innerText.includes('Unknown key')");
    // The browser itself says that the answer was a 401.
    let said = browser.console();
    assert!(said.iter().all(|line| line.contains("401")), "{said:?}");
    assert!(browser.cookies().is_empty(), "nobody is in");

    browser.write("[name=key]", KEY);
    browser.click("form button");
    browser.wait_for_page("/operations");
    assert_eq!(browser.text("h1").as_deref(), Some("Operations"));
    let cookies = browser.cookies();
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!((&cookies[0]["httpOnly"], &cookies[0]["sameSite"]), (&true.into(), &"Lax".into()));
    assert_eq!(browser.eval("return document.cookie"), "");
    assert_eq!(browser.console(), [] as [&str; 0]);

    browser.click("//button[normalize-space()='Log out']");
    browser.wait_for_page("/login");
    assert!(browser.cookies().is_empty());
    browser.open(&hub.page("/operations"));
    assert_eq!(browser.at(), "/login?to=%2Foperations");
}

/// SEC-1: a key that is taken back is out at once: the next request leads to the login, the stream of a page that is open
/// ends, and the page says that it is no longer live.
#[test]
fn sec_1_a_key_that_is_taken_back_is_out_at_once() {
    let (_folder, hub) = hub();
    let key = hub.key("leaver", &["read", "operate"]);
    let browser = Browser::start();
    browser.log_in(&hub, &key, "/deadLetters");
    browser.wait("it is live", "document.querySelector('.live').dataset.state === 'on'");

    let session = hub.session(&key);
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head =
        format!("GET /live?page=/deadLetters HTTP/1.1\r\nhost: hub\r\ncookie: {}\r\n\r\n", session.cookie);
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");

    hub.must("DELETE", &format!("{KEYS}/leaver"), &serde_json::Value::Null);
    let mut quiet = 0;
    let ended = stream.lines().map_while(Result::ok).any(|line| {
        quiet += u32::from(line.starts_with(": still here"));
        assert!(quiet < 3, "the stream goes on");
        line == "0"
    });
    assert!(ended, "the stream ends as it should");
    browser.wait("it says so", "document.querySelector('.live').dataset.state === 'off'");
    let asked = hub.call("GET", "/deadLetters", &[("cookie", &session.cookie)], "");
    assert_eq!((asked.status, header(&asked.head, "location")), (303, Some("/login?to=%2FdeadLetters")));
    browser.open(&hub.page("/operations"));
    assert_eq!(browser.at(), "/login?to=%2Foperations");
}

/// SEC-1: somebody whose key may not read is told which one to use, and a session sees what its key sees.
#[test]
fn sec_1_a_key_sees_on_the_pages_what_it_sees_in_the_api() {
    let (_folder, hub) = hub();
    let filled = filling::a_day(&hub);
    let blind = hub.key("sender", &["ingest"]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let refused = hub.call("POST", "/login", &form, &format!("key={blind}"));
    assert!(refused.status == 401 && refused.text.contains("may not read"), "{}", refused.text);
    assert!(header(&refused.head, "set-cookie").is_none());

    let made = serde_json::json!({"name": "mailer", "scopes": ["read"], "services": ["mail"]});
    let made = hub.must("POST", KEYS, &made);
    let session = hub.session(made["key"].as_str().unwrap());
    let list = hub.call("GET", "/deadLetters/list", &[("cookie", &session.cookie)], "").text;
    assert!(!list.contains("order-4"), "dead letters of another service");
    let letter = filled.path("/deadLetters/{letter}");
    assert_eq!(hub.call("GET", &letter, &[("cookie", &session.cookie)], "").status, 404);
}
