//! Channels: mail and webhooks, tried and true, and what is secret about them.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::mail::{PASSWORD, Server, Speaks, USER};
use super::{ALERTS, CHANNELS, SIGNED_WITH, Scene};
use crate::harness::{Hub, SEAWALL, until};
use crate::peer::{Peer, PeerBehavior};

fn mail(server: &Server, tls: &str) -> Value {
    json!({
        "type": "email", "host": "127.0.0.1", "port": server.port, "tls": tls, "from": "hub@example.com",
        "to": ["duty@example.com", "nobody@example.com"], "ca": server.authority,
    })
}

fn with_login(mut channel: Value, password: &str) -> Value {
    (channel["username"], channel["password"]) = (json!(USER), json!(password));
    channel
}

/// HUB-12: an incident is a mail to whoever is on duty, by STARTTLS and with a password; its end stands below it.
#[test]
fn hub_12_an_incident_is_a_mail_and_its_end_another() {
    let (scene, server) = (Scene::new(), Server::start(Speaks::StartTls));
    let channel =
        scene.hub.must("PUT", &format!("{CHANNELS}/mail"), &with_login(mail(&server, "starttls"), PASSWORD));
    assert_eq!((&channel["password"], &channel["username"]), (&json!("…"), &json!(USER)));
    let force = json!({"reason": "größer\r\nBcc: all@example.com"});
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:forceOpen", &force);
    let opened = scene.told("billing", "open");
    scene.hub.must("POST", "/api/v1/registry/services/billing/circuit:reset", &json!({}));
    scene.told("billing", "resolved");
    let mails = server.mails();
    assert_eq!(mails.len(), 2, "{mails:?}");
    for mail in &mails {
        assert!(mail.secure && mail.logged_in, "{mail:?}");
        assert_eq!((&*mail.from, &mail.to[..]), ("hub@example.com", &["duty@example.com".to_owned()][..]));
        assert!(mail.head.is_ascii() && !mail.head.contains("\nBcc:"), "{}", mail.head);
        assert!(mail.text.contains(opened["link"].as_str().unwrap()), "{}", mail.text);
        assert!(mail.header("Date").ends_with("+0000"), "{}", mail.head);
    }
    assert!(mails[0].text.contains("forced open (größer"), "{}", mails[0].text);
    assert!(mails[1].text.starts_with("Resolved:"), "{}", mails[1].text);
    let id = opened["id"].as_str().unwrap();
    assert_eq!(mails[0].header("Message-ID"), format!("<{id}-opened@example.com>"));
    assert_eq!(mails[1].header("In-Reply-To"), mails[0].header("Message-ID"));
}

/// HUB-12: a sample says what came of it, whichever way TLS begins; a server that can't be believed, has no TLS or does not know
/// the password gets nothing.
#[test]
fn hub_12_a_sample_says_what_came_of_it() {
    let scene = Scene::new();
    let path = format!("{CHANNELS}/mail");
    let test = || scene.hub.must("POST", &format!("{path}:test"), &Value::Null);
    let [plain, starttls, implicit] = [Speaks::Plain, Speaks::StartTls, Speaks::Implicit].map(Server::start);
    for (server, tls, login) in
        [(&plain, "none", false), (&starttls, "starttls", true), (&implicit, "implicit", true)]
    {
        let channel = mail(server, tls);
        let channel = if login { with_login(channel, PASSWORD) } else { channel };
        scene.hub.must("PUT", &path, &channel);
        let tested = test();
        assert_eq!(tested["sent"], true, "{tls}: {tested}");
        assert!(
            tested["said"].as_str().unwrap().contains("queued as 4711; refused: nobody@example.com"),
            "{tested}"
        );
        let mail = server.mails().pop().unwrap();
        assert!(mail.header("Subject").starts_with("[Seawall] test:"), "{}", mail.head);
        assert_eq!((mail.secure, mail.logged_in), (login, login));
    }
    let counts = || [&plain, &starttls, &implicit].map(|server| server.mails().len());
    assert_eq!(counts(), [1, 1, 1]);
    for (channel, word) in [
        (mail(&plain, "starttls"), "does not offer STARTTLS"),
        (with_login(mail(&starttls, "starttls"), "another"), "535"),
        (
            json!({"type": "email", "host": "127.0.0.1", "port": implicit.port, "tls": "implicit", "from": "a@b", "to": ["c@d"]}),
            "ertificate",
        ),
        (
            json!({"type": "email", "host": "10.255.255.1", "port": 25, "tls": "none", "from": "a@b", "to": ["c@d"]}),
            "--allow-egress",
        ),
        (json!({"type": "webhook", "url": "http://169.254.169.254/latest"}), "--allow-egress"),
    ] {
        let kind = channel["type"].clone();
        if kind == "webhook" {
            scene.hub.must("DELETE", &path, &Value::Null);
        }
        scene.hub.must("PUT", &path, &channel);
        let tested = test();
        assert_eq!(tested["sent"], false, "{tested}");
        assert!(tested["said"].as_str().unwrap().contains(word), "no `{word}`: {tested}");
    }
    assert_eq!(counts(), [1, 1, 1], "none of them got anything");
}

/// HUB-12: what is wrong with a channel is said field by field; a password never goes out in plain text.
#[test]
fn hub_12_a_channel_that_can_not_be_is_refused() {
    let scene = Scene::new();
    for (channel, field) in [
        (json!({"type": "pigeon"}), "type"),
        (json!({}), "type"),
        (json!({"type": "webhook", "url": "ftp://example.com"}), "url"),
        (json!({"type": "webhook", "url": "https://example.com", "secret": "short!"}), "secret"),
        (json!({"type": "webhook", "url": "https://example.com", "to": ["a@b"]}), "to"),
        (
            json!({"type": "email", "host": "a", "from": "a@b", "to": ["c@d"], "tls": "none", "username": "u", "password": "p"}),
            "tls",
        ),
        (json!({"type": "email", "host": "a", "from": "a@b", "to": ["c@d>\r\nDATA"]}), "to"),
        (json!({"type": "email", "host": "a", "from": "a", "to": ["c@d"]}), "from"),
        (json!({"type": "email", "host": "a", "from": "a@b", "to": ["c@d"], "username": "u"}), "password"),
        (json!({"type": "email", "host": "a", "from": "a@b", "to": ["c@d"], "ca": "none"}), "ca"),
    ] {
        let reply = scene.hub.with("PUT", &format!("{CHANNELS}/one"), &[], &channel);
        assert_eq!(
            (reply.status, &reply.body["errors"][0]["field"]),
            (422, &json!(field)),
            "{channel}: {}",
            reply.body
        );
    }
    let log = json!({"type": "webhook", "url": "https://example.com"});
    assert_eq!(scene.hub.with("PUT", &format!("{CHANNELS}/log"), &[], &log).status, 422);
    assert_eq!(scene.hub.with("POST", &format!("{CHANNELS}/none:test"), &[], &Value::Null).status, 404);
}

/// HUB-12, PRM-9: the key of a webhook, its path and a password are found nowhere: in no answer, no file and no line of the log,
/// also if the other side repeats them; another key for all secrets changes nothing for the channels.
#[test]
fn hub_12_what_is_secret_about_a_channel_is_found_nowhere() {
    let (folder, duty, server) = (TempDir::new().unwrap(), Peer::start(), Server::start(Speaks::StartTls));
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let mut command = Hub::command(SEAWALL.as_ref(), &data);
    let file = fs::File::create(&log).unwrap();
    command.env("SEAWALL_LOG_LEVEL", "debug").stdout(Stdio::piped()).stderr(file);
    let hub = Hub::ready(command.spawn().unwrap()).unwrap();
    duty.behave(PeerBehavior::Echo(500));
    let wrong = "an0ther-p4ssword";
    let url = format!("{}/hooks/T0P-S3CRET-PATH", duty.address);
    let hook = json!({"type": "webhook", "url": url, "secret": format!("whsec_{SIGNED_WITH}")});
    hub.must("PUT", &format!("{CHANNELS}/duty"), &hook);
    hub.must("PUT", &format!("{CHANNELS}/mail"), &with_login(mail(&server, "starttls"), wrong));
    let mut said = String::new();
    let mut note = |value: Value| said.push_str(&value.to_string());
    let shown = hub.get(&format!("{CHANNELS}/duty"));
    assert_eq!((&shown["url"], &shown["secret"]), (&json!(format!("{}/…", duty.address)), &json!("…")));
    // What is shown can be written back, and means what is there.
    hub.must("PUT", &format!("{CHANNELS}/duty"), &shown);
    note(hub.must("POST", &format!("{CHANNELS}/duty:test"), &Value::Null));
    note(hub.must("POST", &format!("{CHANNELS}/mail:test"), &Value::Null));
    assert_eq!(duty.only().request_line(), "POST /hooks/T0P-S3CRET-PATH");
    assert!(super::is_signed(&duty.only()));
    let rotated = hub.must("POST", "/api/v1/ops/secrets:rotate", &Value::Null);
    assert_eq!((&rotated["resealed"], &rotated["unreadable"]), (&json!(2), &json!([])), "{rotated}");
    let disk = json!({"freeBytesBelow": 1_u64 << 60});
    hub.must("PATCH", &format!("{}/data-loss-risk", super::ALERT_RULES), &disk);
    let failed = |incident: &Value| {
        let notices = incident["notifications"].as_array().unwrap().clone();
        notices.iter().filter(|notice| !notice["error"].is_null()).count() == 2
    };
    until("both have failed", || hub.get(ALERTS)["alerts"].as_array().unwrap().iter().any(failed));
    for path in [ALERTS, CHANNELS, super::ALERT_RULES, "/api/v1/ops/audit"] {
        note(hub.get(path));
    }
    said.push_str(&fs::read_to_string(&log).unwrap());
    let coded = |text: &str| {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    let secrets = [
        SIGNED_WITH.to_owned(),
        "T0P-S3CRET-PATH".into(),
        wrong.into(),
        coded(wrong),
        coded(&format!("\0{USER}\0{wrong}")),
    ];
    let mut files = vec![said.into_bytes()];
    files.extend(fs::read_dir(&data).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()));
    assert!(files.len() > 2 && files[0].len() > 1_000);
    for secret in &secrets {
        let found = |file: &Vec<u8>| file.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!files.iter().any(found), "{secret}");
    }
}
