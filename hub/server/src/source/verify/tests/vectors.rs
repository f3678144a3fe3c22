//! What others have published, and what is in order.

use super::*;

fn check_one(
    scheme: Scheme,
    secret: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    at: i64,
) -> VerifiedRequest {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    let verifier = Verifier::new(scheme, [secret.into()]).unwrap();
    verifier
        .check(&SignedRequest { headers: &map, body }, Millis(at * 1000))
        .map_err(|no| no.reason())
        .unwrap()
}

/// HUB-3: the example of the Standard Webhooks libraries, with the secret in both of its spellings.
#[test]
fn hub_3_the_example_of_standard_webhooks_passes() {
    let headers = [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    ];
    for secret in ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
        let body = br#"{"test": 2432232314}"#;
        let verified = check_one(Scheme::StandardWebhooks, secret, &headers, body, 1_614_265_330);
        assert_eq!(verified.message.as_deref(), Some("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        assert!(verified.replay_key.is_some());
    }
}

/// HUB-3: the example of GitHub's documentation, with GitHub's scheme and spelled out as a plain HMAC.
#[test]
fn hub_3_the_example_of_github_passes() {
    let value = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let settings = SchemeSettings {
        header: Some("X-Hub-Signature-256".into()),
        prefix: Some("sha256=".into()),
        encoding: Some("hex".into()),
    };
    for scheme in [Scheme::GitHub, Scheme::named("hmac", &settings).unwrap()] {
        let headers = [("x-hub-signature-256", value)];
        let verified = check_one(scheme, "It's a Secret to Everybody", &headers, b"Hello, World!", 0);
        assert_eq!(verified, VerifiedRequest { message: None, replay_key: None });
    }
}

/// HUB-3: the example of Slack's documentation.
#[test]
fn hub_3_the_example_of_slack_passes() {
    let body = concat!(
        "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&",
        "channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&",
        "response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F",
        "96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    );
    let headers = [
        ("x-slack-request-timestamp", "1531420618"),
        ("x-slack-signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
    ];
    let secret = "8f742231b10e8888abcd99yyyzzz85a5";
    let verified = check_one(Scheme::Slack, secret, &headers, body.as_bytes(), 1_531_420_618);
    assert!(verified.replay_key.is_some());
}

/// HUB-3: a plain HMAC, against the second test case of RFC 4231, in all three spellings.
#[test]
fn hub_3_the_example_of_rfc_4231_passes() {
    let digits = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    let base64 = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
    let capitals = digits.to_ascii_uppercase();
    for (encoding, value) in
        [(Encoding::Hex, digits), (Encoding::Hex, &*capitals), (Encoding::Base64, base64)]
    {
        let header = HeaderName::from_static("x-mac");
        let scheme = Scheme::Hmac(HmacFormat { header, prefix: String::new(), encoding });
        check_one(scheme, "Jefe", &[("x-mac", value)], b"what do ya want for nothing?", 0);
    }
}

/// HUB-3: Stripe publishes no example with its secret, so this one is computed here: with the test signature `v0` that
/// it sends along, and in either order.
#[test]
fn hub_3_a_request_as_stripe_writes_it_passes() {
    let whole = proof(&Scheme::Stripe, SECRET, STAMP, BODY);
    let (stamp, v1) = whole.split_once(',').unwrap();
    let zeros = "0".repeat(64);
    for value in [
        whole.clone(),
        format!("{whole},v0={zeros}"),
        format!("{v1},{stamp}"),
        format!("{stamp},v1={zeros},{v1}"),
    ] {
        check_one(Scheme::Stripe, SECRET, &[("stripe-signature", &value)], BODY, NOW.0 / 1000);
    }
}

/// HUB-3: what each scheme says about a request that is in order.
#[test]
fn hub_3_each_scheme_accepts_what_its_sender_writes() {
    for scheme in schemes() {
        let verified = check(&scheme, &request(&scheme)).unwrap();
        let message = match scheme {
            Scheme::StandardWebhooks => Some("msg_1"),
            Scheme::GitHub => Some("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            _ => None,
        };
        assert_eq!(verified.message.as_deref(), message);
        assert_eq!(verified.replay_key.is_some(), timed().contains(&scheme), "{scheme:?}");
    }
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_str(&format!("bEaReR {SECRET}")).unwrap());
    assert!(check(&Scheme::Bearer, &headers).is_ok(), "the word may be written in any case (RFC 9110)");
}

/// HUB-3: with several secrets, what any of them has signed is accepted, so that secrets can be changed.
#[test]
fn hub_3_each_secret_of_a_rotation_is_accepted() {
    for scheme in schemes() {
        let verifier = Verifier::new(scheme.clone(), [SECRET.into(), OTHER.into()]).unwrap();
        let accepts = |secret| {
            let headers = request_at(&scheme, secret, STAMP);
            verifier.check(&SignedRequest { headers: &headers, body: BODY }, NOW).is_ok()
        };
        assert!(accepts(SECRET) && accepts(OTHER), "{scheme:?}");
        assert!(!accepts("dGhpcmQgdGhpcmQgdGhpcmQgdGhpcmQg"), "{scheme:?}");
    }
}

/// HUB-3: a sender that rotates signs twice; either signature is enough, whichever comes first, and other versions and
/// what can't be read are passed over.
#[test]
fn hub_3_one_signature_of_several_is_enough() {
    let sign = |secret| proof(&Scheme::StandardWebhooks, secret, STAMP, BODY);
    let (ours, other) = (sign(SECRET), sign(OTHER));
    let pairs =
        [format!("{ours} {other}"), format!("{other} {ours}"), format!("v1a,AAAA v2,BBBB v1,!!! {ours}")];
    for value in pairs {
        let mut headers = request(&Scheme::StandardWebhooks);
        headers.insert("webhook-signature", HeaderValue::from_str(&value).unwrap());
        assert!(check(&Scheme::StandardWebhooks, &headers).is_ok(), "{value}");
    }
}

/// HUB-3. Trap: "Replay of a signed webhook → tolerance of 5 minutes both ways and an id cache." The key of a replay is
/// the same however its signatures are written, and another one for an honest second attempt.
#[test]
fn hub_3_a_replay_in_another_spelling_has_the_same_key() {
    let both = [SECRET.into(), OTHER.into()];
    let verifier = Verifier::new(Scheme::StandardWebhooks, both).unwrap();
    let key = |headers: &HeaderMap| {
        verifier.check(&SignedRequest { headers, body: BODY }, NOW).unwrap().replay_key.unwrap()
    };
    let first = request(&Scheme::StandardWebhooks);
    let mut other = request_at(&Scheme::StandardWebhooks, OTHER, STAMP);
    assert_eq!(key(&first), key(&other), "the same message by the other secret");
    let padded = format!("{} v1,AAAA", proof(&Scheme::StandardWebhooks, OTHER, STAMP, BODY));
    other.insert("webhook-signature", HeaderValue::from_str(&padded).unwrap());
    assert_eq!(key(&first), key(&other));
    let later = request_at(&Scheme::StandardWebhooks, SECRET, "1700000005");
    assert_ne!(key(&first), key(&later), "an honest second attempt has another time");
    // Trap: "Concatenation ambiguity (`a:b` + `c`) → length-prefixed hash input."
    assert_ne!(super::key(&[b"a", b"bc"]), super::key(&[b"ab", b"c"]));
    let keys: Vec<_> =
        timed().iter().map(|scheme| check(scheme, &request(scheme)).unwrap().replay_key).collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
}
