//! What is nearly right, and what is anything at all.

use proptest::prelude::*;

use super::*;

fn with(scheme: &Scheme, value: &[u8]) -> Option<HeaderMap> {
    let mut headers = request(scheme);
    headers.insert(proof_header(scheme), HeaderValue::from_bytes(value).ok()?);
    Some(headers)
}

/// HUB-3. Trap: "A verifier that accepts a truncated signature, or stops at the shorter string (RUSTSEC-2024-0010) →
/// every truncation and every flipped byte is refused; constant time by a library."
#[test]
fn hub_3_every_truncation_of_a_signature_is_refused() {
    for scheme in schemes() {
        let whole = proof(&scheme, SECRET, STAMP, BODY);
        for length in 0..whole.len() {
            let cut = with(&scheme, &whole.as_bytes()[..length]).unwrap();
            assert!(check(&scheme, &cut).is_err(), "{scheme:?} accepts {length} of {} bytes", whole.len());
            let end = with(&scheme, &whole.as_bytes()[length + 1..]).unwrap();
            assert!(check(&scheme, &end).is_err(), "{scheme:?} accepts the end after {length} bytes");
        }
    }
}

/// HUB-3. Trap: "every truncation and every flipped byte is refused": each bit of each byte, and each byte as every
/// other one that a header may hold.
#[test]
fn hub_3_every_flipped_bit_and_byte_of_a_signature_is_refused() {
    for scheme in schemes() {
        let whole = proof(&scheme, SECRET, STAMP, BODY).into_bytes();
        for at in 0..whole.len() {
            for byte in (0..=u8::MAX).filter(|byte| *byte != whole[at]) {
                // The word `Bearer` may be written in any case; the token may not.
                let is_case = scheme == Scheme::Bearer && at < 6 && byte == whole[at] ^ 0x20;
                let mut changed = whole.clone();
                changed[at] = byte;
                let Some(headers) = with(&scheme, &changed).filter(|_| !is_case) else { continue };
                let text = String::from_utf8_lossy(&changed);
                assert!(check(&scheme, &headers).is_err(), "{scheme:?} accepts {text}");
            }
        }
    }
}

/// HUB-3: a signature with more after it, or before it, is another one.
#[test]
fn hub_3_a_longer_signature_is_refused() {
    for scheme in schemes() {
        let whole = proof(&scheme, SECRET, STAMP, BODY);
        for more in ["0", "00", "=", "A", "AAAA", "%00"] {
            for value in [format!("{whole}{more}"), format!("{more}{whole}")] {
                assert!(
                    check(&scheme, &with(&scheme, value.as_bytes()).unwrap()).is_err(),
                    "{scheme:?}: {value}"
                );
            }
        }
    }
}

/// HUB-3: the body is what is signed, each byte of it; and an id or a time that is signed can't be exchanged.
#[test]
fn hub_3_a_signature_over_something_else_is_refused() {
    for scheme in schemes().into_iter().filter(|scheme| *scheme != Scheme::Bearer) {
        let headers = request(&scheme);
        for other in [&b""[..], br#"{"order": 8}"#, br#"{"order": 7} "#, br#"{"order": 7"#, b"\xff"] {
            let refused =
                verifier(&scheme).check(&SignedRequest { headers: &headers, body: other }, NOW).unwrap_err();
            assert!(refused.reason().contains("another secret, or of another body"), "{}", refused.reason());
        }
        let strange = request_at(&scheme, OTHER, STAMP);
        assert!(refusal(&scheme, &strange).contains("by another secret"));
    }
    let mut headers = request(&Scheme::StandardWebhooks);
    headers.insert("webhook-id", HeaderValue::from_static("msg_2"));
    assert!(check(&Scheme::StandardWebhooks, &headers).is_err());
    let mut headers = request(&Scheme::Slack);
    headers.insert("x-slack-request-timestamp", HeaderValue::from_static("1700000001"));
    assert!(check(&Scheme::Slack, &headers).is_err());
}

/// HUB-3: id, time and body are signed with dots between them, so an id with a dot could be a piece of another request:
/// what was signed as `a` · time · `1700000000.{}` would pass as `a.time` · 1700000000 · `{}`.
#[test]
fn hub_3_an_id_with_a_dot_can_not_move_the_borders() {
    let key = STANDARD.decode(SECRET).unwrap();
    let signature = STANDARD.encode(code(&key, &[b"a.1699999999.1700000000.", BODY]));
    let mut headers = request(&Scheme::StandardWebhooks);
    headers.insert("webhook-id", HeaderValue::from_static("a.1699999999"));
    headers.insert("webhook-signature", HeaderValue::from_str(&format!("v1,{signature}")).unwrap());
    assert!(refusal(&Scheme::StandardWebhooks, &headers).contains("an id without a dot"));
}

/// HUB-3: a header that is missing, empty, there twice or no text; each is told apart in the log.
#[test]
fn hub_3_a_header_is_there_once_and_is_text() {
    for scheme in schemes() {
        for name in request(&scheme).keys().filter(|name| *name != "x-github-delivery") {
            let changed = |change: &dyn Fn(&mut HeaderMap)| {
                let mut headers = request(&scheme);
                change(&mut headers);
                refusal(&scheme, &headers)
            };
            let gone = changed(&|headers| drop(headers.remove(name)));
            assert_eq!(gone, format!("header `{name}` is missing"));
            let empty = changed(&|headers| drop(headers.insert(name, HeaderValue::from_static(""))));
            assert_eq!(empty, format!("header `{name}` is empty"));
            let twice = changed(&|headers| {
                let same = headers[name].clone();
                headers.append(name, same);
            });
            assert_eq!(twice, format!("header `{name}` stands more than once"));
            let no_text = changed(&|headers| {
                let mut bytes = headers[name].as_bytes().to_vec();
                bytes.push(0xe9);
                headers.insert(name, HeaderValue::from_bytes(&bytes).unwrap());
            });
            assert_eq!(no_text, format!("header `{name}` has characters other than visible ASCII"));
        }
    }
    let mut headers = request(&Scheme::GitHub);
    headers.append("x-github-delivery", HeaderValue::from_static("another"));
    assert!(
        refusal(&Scheme::GitHub, &headers).contains("more than once"),
        "which of the two is the event's id?"
    );
    headers.remove("x-github-delivery");
    assert_eq!(check(&Scheme::GitHub, &headers).unwrap().message, None);
}

/// HUB-3: credentials of another kind are none.
#[test]
fn hub_3_other_credentials_are_refused() {
    let token = format!("Basic {SECRET}");
    for value in ["Bearer", "Bearer ", &*format!("Bearer  {SECRET}"), SECRET, &token, "Bearer x"] {
        assert!(
            check(&Scheme::Bearer, &with(&Scheme::Bearer, value.as_bytes()).unwrap()).is_err(),
            "{value}"
        );
    }
}

/// HUB-3. Trap: "Replay of a signed webhook → tolerance of 5 minutes both ways and an id cache."
#[test]
fn hub_3_a_signed_time_is_good_for_five_minutes_both_ways() {
    for scheme in timed() {
        let at = |seconds: i64, millis: i64| {
            let stamp = (NOW.0 / 1000 + seconds).to_string();
            let headers = request_at(&scheme, SECRET, &stamp);
            verifier(&scheme).check(&SignedRequest { headers: &headers, body: BODY }, Millis(NOW.0 + millis))
        };
        for (seconds, millis) in [(0, 0), (300, 0), (-300, 0), (300, 600_000), (-1, 299_000)] {
            assert!(at(seconds, millis).is_ok(), "{scheme:?}: {seconds} s, {millis} ms");
        }
        for (seconds, millis, said) in [
            (301, 0, "301 s ahead"),
            (-301, 0, "301 s ago"),
            (300, -1, "301 s ahead"),
            (-300, 1, "301 s ago"),
            (0, 86_400_000, "86400 s ago"),
        ] {
            let reason = at(seconds, millis).unwrap_err().reason();
            assert!(reason.contains(said), "{scheme:?}: {reason}");
        }
    }
}

/// HUB-3: a time is digits and nothing else, although it is signed as it should be.
#[test]
fn hub_3_a_time_that_is_none_is_refused() {
    for scheme in timed() {
        let maximum = i64::MAX.to_string();
        for stamp in [
            "-1700000000",
            "+1700000000",
            "1700000000.0",
            "0x6553f100",
            "now",
            "1.7e9",
            " 1700000000",
            "1700000000 ",
            "99999999999999999999999",
            "18446744073709551616",
            &maximum,
            "-1",
        ] {
            let reason = refusal(&scheme, &request_at(&scheme, SECRET, stamp));
            assert!(reason.contains("is not in seconds since 1970"), "{stamp}: {reason}");
        }
        for now in [i64::MIN, i64::MAX] {
            let headers = request(&scheme);
            assert!(
                verifier(&scheme)
                    .check(&SignedRequest { headers: &headers, body: BODY }, Millis(now))
                    .is_err()
            );
        }
    }
    let good = proof(&Scheme::Stripe, SECRET, STAMP, BODY);
    for value in [format!("{good},t={STAMP}"), format!("t=1,{good}"), format!("{good},t=")] {
        let reason = refusal(&Scheme::Stripe, &with(&Scheme::Stripe, value.as_bytes()).unwrap());
        assert!(
            reason.contains("is not written as `t=` and a time"),
            "which of the times is signed? {reason}"
        );
    }
    for value in ["v1=00", "t=1700000000", "t=1700000000,t=1700000000,v1=00", "t=,v1=00", ""] {
        assert!(
            check(&Scheme::Stripe, &with(&Scheme::Stripe, value.as_bytes()).unwrap()).is_err(),
            "{value}"
        );
    }
}

/// HUB-3: a list of signatures has a bound, because each costs a comparison.
#[test]
fn hub_3_too_many_signatures_are_refused() {
    for (scheme, entry, between) in
        [(Scheme::StandardWebhooks, "v1,AAAA", " "), (Scheme::Stripe, "v1=00", ",")]
    {
        let good = proof(&scheme, SECRET, STAMP, BODY);
        let list = |others: usize| vec![entry; others].join(between) + between + &good;
        assert!(check(&scheme, &with(&scheme, list(15).as_bytes()).unwrap()).is_ok());
        let many = with(&scheme, list(16).as_bytes()).unwrap();
        assert!(refusal(&scheme, &many).contains("too many signatures"));
    }
}

proptest! {
    /// HUB-3: whatever comes in is refused and not a panic.
    #[test]
    fn hub_3_no_request_makes_it_panic(
        values in proptest::collection::vec(("[a-z-]{1,20}", proptest::collection::vec(any::<u8>(), 0..80)), 0..6),
        proofs in proptest::collection::vec(any::<u8>(), 0..120),
        near in "(t=|v1=|v1,|v0=|sha256=|Bearer |sig:)?[0-9a-fA-F,= .v]{0,90}",
        stamp in "[0-9+-]{0,24}",
        body in proptest::collection::vec(any::<u8>(), 0..200),
        now in any::<i64>(),
    ) {
        for scheme in schemes() {
            for value in [&proofs[..], near.as_bytes()] {
                let mut headers = request(&scheme);
                for (name, value) in &values {
                    if let (Ok(name), Ok(value)) =
                        (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
                    {
                        headers.append(name, value);
                    }
                }
                for name in ["webhook-timestamp", "x-slack-request-timestamp"] {
                    headers.insert(name, HeaderValue::from_str(&stamp).unwrap());
                }
                if let Ok(value) = HeaderValue::from_bytes(value) {
                    headers.insert(proof_header(&scheme), value);
                    let refused = verifier(&scheme).check(&SignedRequest { headers: &headers, body: &body }, Millis(now));
                    prop_assert!(!refused.unwrap_err().reason().is_empty());
                }
            }
        }
    }
}
