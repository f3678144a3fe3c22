//! Where the hub is, who we are, and how commands end.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use super::{Scene, command, ran, text};
use crate::harness::KEY;
use crate::peer::{Peer, PeerBehavior};

/// HUB-10: without a key, with a wrong one, and with one that is not for this: not allowed, and what to do about it.
#[test]
fn hub_10_a_key_that_is_missing_wrong_or_too_weak_is_told_apart() {
    let scene = Scene::new();
    let list = ["services", "list"];
    ran(command(&scene.url(), &list).env_remove("SEAWALL_KEY"), "")
        .wrong(4, &["(401 unauthorised)", "no key was sent", "SEAWALL_KEY", "--key-file"]);
    ran(command(&scene.url(), &list).env("SEAWALL_KEY", "another-key"), "")
        .wrong(4, &["(401 unauthorised)", "it is wrong", "the key comes from SEAWALL_KEY"]);
    let made = scene.run(&["keys", "make", "shop", "--scope", "ingest"]).well();
    let weak = made.out.trim();
    assert!(weak.starts_with("swk_") && made.err.contains("only once"), "{} {}", made.out, made.err);
    ran(command(&scene.url(), &list).env("SEAWALL_KEY", weak), "")
        .wrong(4, &["(403 forbidden)", "needs the scope `read`", "another key"]);
    ran(command(&scene.url(), &["send", "a.b"]).env("SEAWALL_KEY", weak), "").well();
    let admin = &mut command(&scene.url(), &list);
    ran(admin.env_remove("SEAWALL_KEY").env("SEAWALL_ADMIN_KEY", KEY), "").well();
}

/// HUB-10, SEC-1: a key on the command line would be seen by everybody on the machine, so there is no such option, and
/// whoever tries it is told why without the key being shown.
#[test]
fn hub_10_a_key_never_stands_on_the_command_line() {
    let scene = Scene::new();
    for args in [["--key", "s3cr3t", "health"], ["health", "--key", "s3cr3t"]] {
        let said = scene
            .run(&args)
            .wrong(2, &["`--key` is not supported", "every user of this machine", "--key-file"]);
        assert!(!said.err.contains("s3cr3t"), "{}", said.err);
    }
}

/// HUB-10: a key in a file; one that others can read is used, with a warning.
#[test]
fn hub_10_a_key_is_read_from_a_file() {
    let scene = Scene::new();
    let with = |file: &str| {
        let args = ["services", "list", "--key-file", file];
        ran(command(&scene.url(), &args).env("SEAWALL_KEY", "another-key"), "")
    };
    let file = scene.file("key", &format!("{KEY}\n"));
    set_mode(&file, 0o644);
    let open = with(text(&file)).well();
    assert_eq!(open.err.contains("other users can read the key file"), cfg!(unix), "{}", open.err);
    set_mode(&file, 0o600);
    assert_eq!(with(text(&file)).well().err, "");
    with("nowhere").wrong(2, &["can't read the key file `nowhere`"]);
    for content in ["", " \n", "two words"] {
        let file = scene.file("bad", content);
        with(text(&file)).wrong(2, &["must hold one line with the key"]);
    }
}

#[cfg(unix)]
fn set_mode(file: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_file: &std::path::Path, _mode: u32) {}

/// HUB-10: options stand before the command or behind it, and win over variables.
#[test]
fn hub_10_options_stand_where_somebody_puts_them() {
    let scene = Scene::new();
    let (url, elsewhere) = (scene.url(), "http://127.0.0.1:1");
    for args in [
        ["--url", &url, "--json", "services", "list"],
        ["services", "--url", &url, "list", "--json"],
        ["services", "list", "--json", "--url", &url],
    ] {
        assert_eq!(ran(&mut command(elsewhere, &args), "").well().json()[0]["name"], "billing");
    }
}

/// HUB-10: no hub, a hub that hangs, and something that is no hub.
#[test]
fn hub_10_a_hub_that_is_not_there_ends_with_five() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    ran(&mut command(&format!("http://{free}"), &["services", "list"]), "")
        .wrong(5, &["can't reach the hub at http://", "no connection", "seawall serve", "SEAWALL_URL"]);
    let peer = Peer::start();
    ran(&mut command(&peer.address, &["services", "list"]), "")
        .wrong(5, &["is not a hub: it responds with 200", "--url"]);
    peer.behave(PeerBehavior::Respond(404));
    ran(&mut command(&peer.address, &["services", "list"]), "")
        .wrong(5, &["is not a hub: it responds with 404"]);
    let broken = json!({"status": "error", "code": "store", "message": "the disk is gone", "traceId": "abc"});
    peer.set_body(&broken.to_string());
    peer.behave(PeerBehavior::Respond(503));
    ran(&mut command(&peer.address, &["services", "list"]), "")
        .wrong(5, &["the disk is gone (503 store)", "traceId=abc"]);
    peer.behave(PeerBehavior::Hang);
    ran(&mut command(&peer.address, &["health", "--timeout", "200ms"]), "")
        .wrong(5, &["no response within 200ms"]);
    for url in ["nonsense", "ftp://x", "http://user:pass@x"] {
        ran(&mut command(url, &["health"]), "").wrong(2, &["is not the URL of a hub"]);
    }
    ran(&mut command("http://x", &["health", "--timeout", "5"]), "").wrong(2, &["needs a unit"]);
}

/// HUB-10: whoever has read enough closes the pipe, and that is no mistake.
#[test]
fn hub_10_a_reader_that_has_seen_enough_may_go() {
    let scene = Scene::new();
    let events: String =
        (0..1_500).map(|n| format!("{}\n", json!({"id": format!("E-{n}"), "type": "a.b"}))).collect();
    scene.fed(&["send", "--file", "-"], &events).well();
    let mut child = command(&scene.url(), &["events", "list", "--all"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("ID "), "{first}");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), said.as_str()), (Some(0), ""));
}

/// HUB-10, SEC-1: a key is shown once. If it could not be, also because its reader is gone, that is no good end.
#[test]
fn hub_10_a_key_that_nobody_has_seen_is_no_good_end() {
    let scene = Scene::new();
    for json in [&["--json"][..], &[]] {
        let name = format!("shop-{}", json.len());
        let args = [&["keys", "make", &name, "--scope", "ingest"], json].concat();
        let mut child = command(&scene.url(), &args);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("is lost") && said.contains(&format!("keys rotate {name}")), "{said}");
    }
}

/// HUB-10: what is longer than any id is a mistake of who typed it, and not of the hub.
#[test]
fn hub_10_an_id_that_is_far_too_long_is_a_mistake_on_the_command_line() {
    let scene = Scene::new();
    let long = "x".repeat(60_000);
    scene.run(&["events", "show", &long]).wrong(2, &["the request is too long"]);
    scene.run(&["events", "show", &long[..2_000]]).wrong(3, &["there is no such event"]);
}

/// HUB-10: tables have no colours where nobody sees them.
#[test]
fn hub_10_nothing_is_coloured_in_a_pipe() {
    let scene = Scene::new();
    for args in [["services", "list"], ["circuits", "list"], ["keys", "list"]] {
        assert!(!scene.run(&args).well().out.contains('\u{1b}'));
    }
}

/// HUB-10, HUB-9: how the hub is; no key is needed for that.
#[test]
fn hub_10_health_says_which_circuits_are_not_closed() {
    let scene = Scene::new();
    let without_key = |args: &[&str]| ran(command(&scene.url(), args).env_remove("SEAWALL_KEY"), "");
    without_key(&["health"]).well().says(&["hub up", "not closed: 0"]);
    scene.run(&["circuits", "force-open", "billing", "--reason", "a test"]).well();
    without_key(&["health"]).well().says(&["not closed: 1", "billing"]);
    assert_eq!(without_key(&["health", "--json"]).well().json()["state"], "up");
    scene.run(&["health", "now"]).wrong(2, &["unexpected argument 'now'"]);
}
