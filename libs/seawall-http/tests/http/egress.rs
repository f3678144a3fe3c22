//! No connection to where the rules forbid it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seawall::{Kind, Ran};
use seawall_http::auth::OAuth2;
use seawall_http::{Auth, Cause, Egress, HttpClient, Request, Resolving};

use crate::server::{Server, nobody_at};
use crate::{builder, guard, loopback};

/// SEC-3, PRM-10: decimal, octal, hex and short IPv4, `::ffff:127.0.0.1`, `0.0.0.0`, trailing dot, names: no hit in any case,
/// and the error does not tell which case it was.
#[tokio::test]
async fn prm_10_no_spelling_of_this_machine_gets_a_connection() {
    let canary = Server::fine().await;
    let port = canary.port();
    let hosts = [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.255.255.254",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
    ];
    let (client, guard) = (HttpClient::builder().build().unwrap(), guard());
    for host in hosts {
        let request = Request::get(format!("http://{host}:{port}/")).unwrap();
        let error = client.send(&guard, request).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.ran(), error.attempts()),
            (Kind::Failed, Ran::No, 1),
            "{host}: {error:?}"
        );
        let last = error.last().unwrap();
        assert_eq!(last.to_string(), "the egress rules refuse this target, nothing was sent", "{host}");
        assert_eq!(last.fault().to_string(), "business fault", "{host}");
        assert!(last.refusal().is_some(), "{host}: the operator is told");
    }
    assert_eq!(canary.connections(), 0);
}

/// SEC-3: IDN, `user@host` and everything else that is read differently by different readers.
#[tokio::test]
async fn sec_3_urls_that_can_be_read_in_two_ways_are_no_requests() {
    let urls = [
        "http://example.com@127.0.0.1/",
        "http://user:pass@example.com/",
        "http://127.0.0.1\\@example.com/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
        "http://exämple.com/",
        "http://[fe80::1%25eth0]/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://0x100000000/",
        "http://example.com:99999/",
        "http://example.com:/",
        "http://example.com:0/",
        "http:///path",
        "http://",
        "/path",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com/\r\nx: y",
        "http://example.com\0/",
        "",
    ];
    for url in urls {
        assert!(Request::get(url).is_err(), "{url:?}");
    }
}

/// SEC-3: resolve once, check every address, dial that address; TTL-0 rebinding gets no connection.
#[tokio::test]
async fn sec_3_a_name_that_changes_its_address_gets_no_connection() {
    let (_kept, nobody) = nobody_at("127.0.0.1:0");
    let port = nobody.port();
    let canary = Server::raw_at(&format!("127.0.0.2:{port}"), |_, _| async {}).await;
    // First the address that is allowed, then the one that is not.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let resolver = move |_: &str| -> Resolving {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move { Ok(vec![if first { "127.0.0.1" } else { "127.0.0.2" }.parse().unwrap()]) })
    };
    let egress = Egress::default().allow("127.0.0.1".parse().unwrap());
    let client = HttpClient::builder().egress(egress).resolver(resolver).build().unwrap();
    let url = format!("http://rebind.example:{port}/");
    // The address that was checked is the one that is dialled, and nobody asks again: nobody listens there.
    let error = client.attempt(&guard(), Request::get(&url).unwrap()).await.unwrap_err();
    assert!(
        matches!(error.last().unwrap().cause(), Cause::Connect(address, _) if address.ip().to_string() == "127.0.0.1")
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let error = client.attempt(&guard(), Request::get(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.last().unwrap().refusal().unwrap().address().to_string(), format!("127.0.0.2:{port}"));
    assert_eq!(canary.connections(), 0);
}

/// SEC-3: mixed answers with one bad address.
#[tokio::test]
async fn sec_3_one_bad_address_spoils_the_name() {
    let server = Server::fine().await;
    for addresses in [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "::1"]] {
        let resolver = move |_: &str| -> Resolving {
            Box::pin(async move { Ok(addresses.iter().map(|address| address.parse().unwrap()).collect()) })
        };
        let egress = Egress::default().allow("127.0.0.1".parse().unwrap());
        let client = HttpClient::builder().egress(egress).resolver(resolver).build().unwrap();
        let url = format!("http://mixed.example:{}/", server.port());
        let error = client.send(&guard(), Request::get(url).unwrap()).await.unwrap_err();
        assert!(error.last().unwrap().refusal().is_some());
    }
    assert_eq!(server.connections(), 0);
}

/// SEC-3: private ranges reached through a detour: the token's URL goes through the same rules.
#[tokio::test]
async fn sec_3_tokens_are_fetched_under_the_same_rules() {
    let (target, tokens) = (Server::fine().await, Server::fine().await);
    let client = builder().egress(loopback().ports([target.port()])).build().unwrap();
    let oauth = OAuth2::client_credentials(tokens.url("/token"), "id", "secret".into()).unwrap();
    let request = Request::get(target.url("/")).unwrap().auth(Auth::oauth2(oauth));
    let error = client.send(&guard(), request).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::Credentials(_)), "{error:?}");
    assert_eq!((error.kind(), error.ran(), error.attempts()), (Kind::Failed, Ran::No, 1), "{error:?}");
    assert_eq!((target.connections(), tokens.connections()), (0, 0));
}
