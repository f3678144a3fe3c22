//! What the pages withstand: texts that want to be more, and other sites that want to act for whoever is logged in.

use serde_json::json;

use super::driver::Browser;
use super::filling::{self, EVIL, only_group};
use super::{KEYS, hub, pages};
use crate::harness::{Hub, KEY, header};

/// SEC-1, UI-1: hostile texts in ids, types, sources, data, headers, notes, reasons, answers of peers and names are shown as
/// the texts that they are, on every page, after it was loaded and after it was put in anew: no script of theirs runs, no element
/// or link of theirs is there, no template of theirs is worked out.
#[test]
fn sec_1_hostile_texts_stay_texts_on_every_page() {
    let (_folder, hub) = hub();
    let filled = filling::hostile(&hub);
    let browser = Browser::start();
    browser.as_admin(&hub, "/");
    let injected = "return [...document.querySelectorAll('img:not([src^=\"/assets/\"]), a[href^=\"javascript:\" i], script:not([src]), [onerror], \
         form[action^=\"javascript:\" i]')].map(one => one.outerHTML)";
    let mut shown = String::new();
    for (route, path) in pages::all(&filled) {
        browser.open(&hub.page(&path));
        // Also as the stream puts it in.
        browser.eval_later("const done = arguments[0]; window.seawall.refresh().then(done, done)", &[]);
        assert!(browser.eval("return window.pwned ?? null").is_null(), "{route}");
        assert_eq!(browser.eval(injected), json!([]), "{route}");
        let said = browser.console();
        assert!(said.is_empty(), "{route}: {said:?}");
        shown.push_str(
            &browser.eval("return document.body.textContent").as_str().unwrap().replace("\\\"", "\""),
        );
    }
    for text in EVIL {
        assert!(shown.contains(text), "{text} is shown nowhere");
    }
    assert_eq!(browser.eval("return document.title.includes('49')"), false);
}

fn form(token: Option<&str>, group: &str) -> String {
    let token = token.map(|token| format!("_csrf={token}&")).unwrap_or_default();
    format!("{token}_path=/api/v1/bridge/deadLetterGroups/{group}:acknowledge&_to=/deadLetters")
}

/// SEC-1: what acts has to come from a page of this session. Without its token, with another's, from another site, whichever
/// way a browser says so, it is refused and nothing has changed; the same with all of it in order is done.
#[test]
fn sec_1_nobody_else_acts_for_whoever_is_logged_in() {
    let (_folder, hub) = hub();
    let _billing = filling::refused(&hub, 2);
    let group = only_group(&hub)["fingerprint"].as_str().unwrap().to_owned();
    let (mine, other) = (hub.session(KEY), hub.session(&hub.key("other", &["read", "operate"])));
    let good = form(Some(&mine.token), &group);
    let own = format!("http://{}", "hub");
    type Try<'a> = (&'a str, &'a [(&'a str, &'a str)], String);
    let tries: [Try<'_>; 7] = [
        ("no token", &[], form(None, &group)),
        ("an empty token", &[], form(Some(""), &group)),
        ("a made-up token", &[], form(Some("AAAAAAAAAAAAAAAAAAAAAAAA"), &group)),
        ("the token of another session", &[], form(Some(&other.token), &group)),
        ("another origin", &[("origin", "http://evil.example")], good.clone()),
        ("no origin at all", &[("origin", "null")], good.clone()),
        ("a browser's word", &[("sec-fetch-site", "cross-site"), ("origin", &own)], good.clone()),
    ];
    for (what, headers, form) in tries {
        let refused = hub.act(&mine.cookie, headers, &form);
        assert_eq!(refused.status, 403, "{what}: {}", refused.text);
        assert_eq!(only_group(&hub)["state"], "open", "{what}");
    }
    let by_script =
        json!({"path": format!("/api/v1/bridge/deadLetterGroups/{group}:acknowledge")}).to_string();
    let headers = [("cookie", mine.cookie.as_str()), ("content-type", "application/json")];
    assert_eq!(hub.call("POST", "/act", &headers, &by_script).status, 403);
    // Nobody is there: there is nothing to act with.
    assert_eq!(hub.act("seawall_session=AAAA", &[], &good).status, 303);
    assert_eq!(only_group(&hub)["state"], "open");

    let done = hub.act(&mine.cookie, &[("origin", &own)], &good);
    assert_eq!((done.status, header(&done.head, "location")), (303, Some("/deadLetters")), "{}", done.text);
    assert_eq!(only_group(&hub)["state"], "acknowledged");
}

/// SEC-1: another site can't log somebody in with a key of its own, nor log them out; and a link to log in, or to a form, leads nowhere else.
#[test]
fn sec_1_nobody_is_logged_in_or_out_by_another_site() {
    let (_folder, hub) = hub();
    let _billing = filling::refused(&hub, 1);
    let form = ("content-type", "application/x-www-form-urlencoded");
    for foreign in
        [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site")]
    {
        let refused = hub.call("POST", "/login", &[form, foreign], &format!("key={KEY}"));
        assert_eq!(refused.status, 403, "{foreign:?}");
        assert!(header(&refused.head, "set-cookie").is_none());
        let session = hub.session(KEY);
        let body = format!("_csrf={}", session.token);
        let refused = hub.call("POST", "/logout", &[form, foreign, ("cookie", &session.cookie)], &body);
        assert_eq!((refused.status, header(&refused.head, "set-cookie")), (403, None), "{foreign:?}");
    }
    let session = hub.session(KEY);
    let without = hub.call("POST", "/logout", &[form, ("cookie", &session.cookie)], "");
    assert!(header(&without.head, "set-cookie").is_none(), "without the token nobody is logged out");
    for to in ["//evil.example", "http://evil.example", "/\\evil.example", "javascript:alert(1)"] {
        let begun = hub.call("POST", "/login", &[form], &format!("key={KEY}&to={to}"));
        assert_eq!(header(&begun.head, "location"), Some("/"), "{to}");
        let edit = format!("/rules/invoices/edit?back={to}");
        let page = hub.call("GET", &edit, &[("cookie", &session.cookie)], "");
        let text = page.text.replace("&#x2f;", "/");
        assert!(text.contains("name=\"_to\" value=\"/rules/invoices\""), "{to}: {text}");
        assert!(!text.contains(&format!("=\"{to}\"")), "{to}: {text}");
    }
}

/// SEC-1: a page on another port, which is another site to a browser, shows a page of ours in a frame and sends a form of ours:
/// the frame stays empty, and the form is refused. Neither the browser nor the hub can be talked into it.
#[test]
fn sec_1_another_site_gets_no_page_of_ours_into_a_frame() {
    let (_folder, hub) = hub();
    let _billing = filling::refused(&hub, 1);
    let group = only_group(&hub)["fingerprint"].as_str().unwrap().to_owned();
    let session = hub.session(KEY);
    let evil = crate::peer::Peer::start();
    let browser = Browser::start();
    browser.as_admin(&hub, "/deadLetters");
    browser.open(&format!("{}/", evil.address));
    let framed = "const frame = document.createElement('iframe'); frame.src = arguments[0]; const done = arguments[1]; \
         frame.onload = () => { let seen = null; try { seen = frame.contentDocument?.body?.innerText ?? null } catch { seen = null } done([seen, frame.contentWindow.length]) }; \
         document.documentElement.append(frame)";
    browser.eval_later(framed, &[json!(hub.page("/deadLetters"))]);
    let said = browser.console();
    assert!(
        said.iter().any(|line| line.contains("frame-ancestors") || line.contains("X-Frame-Options")),
        "{said:?}"
    );

    let sent = "const form = document.createElement('form'); form.method = 'post'; form.action = arguments[0]; \
         for (const [name, value] of Object.entries(arguments[1])) { const input = document.createElement('input'); input.name = name; input.value = value; form.append(input) } \
         document.documentElement.append(form); form.submit()";
    let fields = json!({"_csrf": session.token, "_path": format!("/api/v1/bridge/deadLetterGroups/{group}:acknowledge")});
    browser.eval_with(sent, &[json!(hub.page("/act")), fields]);
    browser.wait("it is refused", "document.body.innerText.includes('from another site')");
    assert_eq!(only_group(&hub)["state"], "open");
}

/// SEC-1: every answer of the dashboard says what a browser may do with it: pages, redirects, refusals, what is missing, files.
#[test]
fn sec_1_every_answer_says_what_a_browser_may_do_with_it() {
    let (_folder, hub) = hub();
    let session = hub.session(KEY);
    let cookie = [("cookie", session.cookie.as_str())];
    let style = asset(&hub);
    let answers = [
        hub.call("GET", "/login", &[], ""),
        hub.call("GET", "/operations", &[], ""),
        hub.call("GET", "/operations", &cookie, ""),
        hub.call("GET", "/operations/nothing", &cookie, ""),
        hub.call("GET", &style, &[], ""),
        hub.call("GET", "/assets/nothing.js", &[], ""),
        hub.call("POST", "/act", &cookie, ""),
        hub.call("POST", "/act", &[("origin", "http://evil.example")], ""),
        hub.call("POST", "/login", &[], "key=wrong"),
        hub.call("PUT", "/login", &[], ""),
    ];
    for reply in answers {
        let said =
            |name: &str| header(&reply.head, name).unwrap_or_else(|| panic!("no {name}: {}", reply.head));
        let policy = said("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{part}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!((said("x-content-type-options"), said("x-frame-options")), ("nosniff", "DENY"));
        said("referrer-policy");
        said("cache-control");
    }
    let wrong = hub.call("POST", "/login", &[("x-forwarded-proto", "https")], &format!("key={KEY}"));
    let cookie = header(&wrong.head, "set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Secure"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    let keys = hub.get(KEYS);
    assert!(!keys.to_string().contains(KEY));
}

fn asset(hub: &Hub) -> String {
    let page = hub.call("GET", "/login", &[], "").text;
    let (_, rest) = page.split_once("rel=\"stylesheet\" href=\"").unwrap();
    rest.split('"').next().unwrap().replace("&#x2f;", "/")
}
