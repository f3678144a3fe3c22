//! Credentials on the wire, and nowhere else.

use seawall::Key;
use seawall_http::auth::{BadAuth, Hmac, Webhook};
use seawall_http::{Auth, Body, Request, Secret};

use crate::server::Server;
use crate::{client, guard};

/// ADP-1: auth schemes: bearer, basic, API key header, HMAC, Standard Webhooks.
#[tokio::test]
async fn adp_1_each_scheme_sends_what_the_peer_expects() {
    let server = Server::fine().await;
    let secret = Secret::new("s3cret");
    let hmac = Hmac::new("x-signature", &"key".into()).unwrap().prefix("sha256=");
    let webhook = Webhook::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), "c2Vjb25k".into()]).unwrap();
    let table = [
        (Auth::none(), "authorization", None),
        (Auth::bearer(&secret).unwrap(), "authorization", Some("Bearer s3cret")),
        (
            Auth::basic("Aladdin", &"open sesame".into()).unwrap(),
            "authorization",
            Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ),
        (Auth::header("X-Api-Key", &secret).unwrap(), "x-api-key", Some("s3cret")),
        (
            Auth::hmac(hmac),
            "x-signature",
            Some("sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"),
        ),
        (Auth::webhook(webhook.clone()), "webhook-id", Some("00000000000000000000000000000007")),
    ];
    let (client, guard) = (client(), guard());
    for (auth, name, value) in table {
        let request = Request::post(server.url("/")).unwrap();
        let request = request.body("The quick brown fox jumps over the lazy dog").auth(auth);
        client.send(guard.key(Key::from_u128(7)), request).await.unwrap();
        assert_eq!(server.seen().pop().unwrap().header(name), value);
    }
    let signed = server.seen().pop().unwrap();
    assert_eq!(signed.header("webhook-signature").unwrap().split(' ').count(), 2, "one for each key");
    assert!(signed.header("webhook-timestamp").unwrap().parse::<u64>().unwrap() > 1_700_000_000);

    let own = Request::post(server.url("/")).unwrap().header("webhook-id", "msg_1").unwrap();
    client.send(&guard, own.auth(Auth::webhook(webhook))).await.unwrap();
    assert_eq!(server.seen().pop().unwrap().header("webhook-id"), Some("msg_1"));
}

/// ADP-1: what can't be shown is refused, never sent without it.
#[tokio::test]
async fn adp_1_credentials_that_do_not_fit_are_refused() {
    assert_eq!(Auth::bearer(&"a\r\nb".into()).unwrap_err(), BadAuth::Value);
    assert_eq!(Auth::basic("a:b", &"c".into()).unwrap_err(), BadAuth::User);
    assert_eq!(Auth::header("Host", &"c".into()).unwrap_err(), BadAuth::Header);
    assert_eq!(Hmac::new("a b", &"c".into()).unwrap_err(), BadAuth::Header);
    let server = Server::fine().await;
    let stream = Body::stream(http_body_util::Full::new(bytes::Bytes::from_static(b"x")));
    let hmac = Auth::hmac(Hmac::new("x-signature", &"key".into()).unwrap());
    let request = Request::post(server.url("/")).unwrap().body(stream).auth(hmac);
    let error = client().send(&guard(), request).await.unwrap_err();
    assert_eq!((error.ran(), server.connections()), (seawall::Ran::No, 0), "{error:?}");
}

/// PRM-9: 20 planted canaries are found nowhere: not in what is printed of a request, its evidence, an answer or an error.
#[tokio::test]
async fn prm_9_no_secret_is_shown() {
    let canary = |n: u32| format!("canary{n}");
    let secret = |n: u32| Secret::new(canary(n));
    let auths = [
        Auth::bearer(&secret(1)).unwrap(),
        Auth::basic("user", &secret(2)).unwrap(),
        Auth::header("x-key", &secret(3)).unwrap(),
        Auth::hmac(Hmac::new("x-signature", &secret(4)).unwrap()),
        Auth::webhook(Webhook::new(["Y2FuYXJ5NQ==".into()]).unwrap()),
    ];
    let server = Server::start(|_, _| {
        let mut answer = crate::server::answer(500, "canary6");
        answer.headers_mut().insert("set-cookie", "canary7".parse().unwrap());
        answer
    })
    .await;
    let mut shown = format!("{:?}", secret(0));
    for auth in auths {
        let url = format!("{}?token=canary8", server.url("/"));
        let request = Request::post(url).unwrap().header("authorization", "canary9").unwrap();
        let request = request.header("cookie", "canary10").unwrap().body("canary11").auth(auth.clone());
        let evidence = request.evidence();
        assert!(evidence.headers.is_empty() && evidence.body.as_ref().unwrap() == "canary11");
        let answer = client().attempt(&guard(), &request).await.unwrap();
        shown += &format!("{request:?} {evidence:?} {auth:?} {answer:?} ");
        let error = answer.good().unwrap_err();
        shown += &format!("{error} {error:?}");
    }
    assert!(!shown.contains("canary") && !shown.contains("Y2FuYXJ5"), "{shown}");
}
