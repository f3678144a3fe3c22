//! Tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use seawall::{Ran, secs};
use seawall_http::auth::OAuth2;
use seawall_http::{Auth, Cause, Request};
use tokio::task::JoinSet;

use crate::server::{Server, answer};
use crate::{client, guard};

/// Gives out `token-1`, `token-2`, … that live for this long.
async fn token_server(expires_in: u32) -> Server {
    Server::start(move |number, _| {
        answer(
            200,
            format!(
                r#"{{"access_token":"token-{}","expires_in":{expires_in},"token_type":"Bearer"}}"#,
                number + 1
            ),
        )
    })
    .await
}

fn oauth(tokens: &Server) -> Auth {
    let oauth = OAuth2::client_credentials(tokens.url("/token"), "id", "s3cret".into()).unwrap();
    Auth::oauth2(oauth.scope("read"))
}

fn bearers(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect()
}

/// ADP-1: OAuth2 client credentials: fetched once for all who wait for it, and kept.
#[tokio::test]
async fn adp_1_all_who_need_a_token_share_one_request_for_it() {
    let (tokens, server) = (token_server(3600).await, Server::fine().await);
    let (client, guard, auth) = (client(), guard(), oauth(&tokens));
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let (client, guard) = (client.clone(), guard.clone());
        let request = Request::get(server.url("/")).unwrap().auth(auth.clone());
        calls.spawn(async move { client.send(&guard, request).await.unwrap().status() });
    }
    assert!(calls.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(bearers(&server), ["Bearer token-1"; 20]);
    let asked = tokens.seen();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), Some("Basic aWQ6czNjcmV0"));
    assert_eq!(&asked[0].body[..], b"grant_type=client_credentials&scope=read");
}

/// ADP-1: with refresh: before the token expires.
#[tokio::test]
async fn adp_1_a_token_is_replaced_before_it_expires_on_the_wire() {
    let (tokens, server) = (token_server(100).await, Server::fine().await);
    let time = seawall_testkit::ManualClock::new();
    let client = crate::builder().clock(time.clock()).build().unwrap();
    let (guard, auth) = (guard(), oauth(&tokens));
    let request = Request::get(server.url("/")).unwrap().auth(auth);
    for seconds in [0, 60, 20, 60] {
        time.advance(secs(seconds));
        client.send(&guard, &request).await.unwrap();
    }
    assert_eq!(bearers(&server), ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]);
}

/// ADP-1: once after a 401: sent again at once with a new token, and not a third time.
#[tokio::test]
async fn adp_1_a_refused_token_is_replaced_once() {
    let tokens = token_server(3600).await;
    let server = Server::start(|_, seen| {
        let is_old = seen.header("authorization") == Some("Bearer token-1") && seen.uri.path() == "/new";
        answer(if is_old || seen.uri.path() == "/never" { 401 } else { 200 }, "")
    })
    .await;
    let (client, guard, auth) = (client(), guard(), oauth(&tokens));
    let post = |path: &str| Request::post(server.url(path)).unwrap().body("x").auth(auth.clone());
    assert_eq!(client.send(&guard, post("/")).await.unwrap().status(), 200);
    let second = client.send(&guard, post("/new")).await.unwrap();
    assert_eq!((second.status().as_u16(), second.timings().sends), (200, 2));
    assert!(server.seen().iter().all(|seen| &seen.body[..] == b"x"));
    assert_eq!(bearers(&server), ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
    let never = client.send(&guard, post("/never")).await.unwrap();
    assert_eq!((never.status().as_u16(), never.attempt()), (401, 1));
    assert_eq!((server.seen().len(), tokens.seen().len()), (5, 3));
}

/// ADP-1: one delivery attempt is exactly one send: a refused token is replaced for the next one, which may help.
#[tokio::test]
async fn adp_1_a_single_attempt_is_a_single_send() {
    let tokens = token_server(3600).await;
    let server = Server::start(|number, _| answer(if number == 1 { 401 } else { 200 }, "")).await;
    let (client, guard, auth) = (client(), guard(), oauth(&tokens));
    let request = Request::post(server.url("/")).unwrap().auth(auth);
    assert_eq!(client.attempt(&guard, &request).await.unwrap().status(), 200);
    let refused = client.attempt(&guard, &request).await.unwrap();
    let fault = refused.fault().unwrap();
    assert!(refused.status() == 401 && fault.is_transient() && fault.did_run() == Ran::No);
    assert_eq!(client.attempt(&guard, &request).await.unwrap().status(), 200);
    assert_eq!(bearers(&server), ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
}

/// ADP-1: without a token nothing is sent, and it may pass if the token server's trouble may.
#[tokio::test]
async fn adp_1_without_a_token_nothing_is_sent() {
    let server = Server::fine().await;
    let table = [
        (500, "", true, 3),
        (401, "s3cret", false, 1),
        (200, "{}", true, 3),
        (200, "no json s3cret", true, 3),
    ];
    for (status, body, passes, attempts) in table {
        let tokens = Server::start(move |_, _| answer(status, body)).await;
        let request = Request::post(server.url("/")).unwrap().auth(oauth(&tokens));
        let error = client().send(&guard(), request).await.unwrap_err();
        assert!(matches!(error.last().unwrap().cause(), Cause::Credentials(_)), "{error:?}");
        assert_eq!((error.ran(), error.attempts()), (Ran::No, attempts), "{status} {body}: {error:?}");
        assert_eq!(error.last_fault().is_transient(), passes);
        let shown = format!("{error} {error:?} {}", error.last().unwrap());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    assert_eq!(server.connections(), 0);
}

/// ADP-1: while a token still holds, trouble of the token server is no trouble.
#[tokio::test]
async fn adp_1_a_token_that_still_holds_outlives_its_server() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = down.clone();
    let tokens = Server::start(move |_, _| {
        let body = r#"{"access_token":"token","expires_in":100}"#;
        if is_down.load(Ordering::Relaxed) { answer(503, "") } else { answer(200, body) }
    })
    .await;
    let server = Server::fine().await;
    let time = seawall_testkit::ManualClock::new();
    let client = crate::builder().clock(time.clock()).build().unwrap();
    let request = Request::get(server.url("/")).unwrap().auth(oauth(&tokens));
    client.send(&guard(), &request).await.unwrap();
    down.store(true, Ordering::Relaxed);
    time.advance(secs(80));
    assert_eq!(client.send(&guard(), &request).await.unwrap().status(), 200);
    time.advance(secs(30));
    assert!(client.send(&guard(), &request).await.is_err());
}
