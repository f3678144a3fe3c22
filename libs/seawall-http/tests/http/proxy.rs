//! Through a proxy.

use std::sync::{Arc, Mutex};

use seawall::Ran;
use seawall_http::{Cause, Egress, HttpClient, Proxy, Request, Resolving};
use tokio::net::TcpStream;

use crate::server::{Server, read_head, write};
use crate::{builder, guard};

/// A proxy that answers `CONNECT` with this status, and connects if it is 200; and what it was asked.
async fn proxy(status: u16) -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    let server = Server::raw(move |_, mut stream| {
        let log = log.clone();
        async move {
            let head = read_head(&mut stream).await;
            log.lock().unwrap().push(head.clone());
            write(&mut stream, &format!("HTTP/1.1 {status} Whatever\r\nx-proxy: yes\r\n\r\n")).await;
            if status == 200 {
                let port = head.split(' ').nth(1).unwrap().rsplit(':').next().unwrap().to_owned();
                let mut target = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut stream, &mut target).await);
            }
        }
    })
    .await;
    (server, asked)
}

fn local(_: &str) -> Resolving {
    Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
}

/// ADP-1: proxies: asked for the address that was checked, or for the name if they filter by name.
#[tokio::test]
async fn adp_1_a_proxy_is_asked_for_a_tunnel_to_the_checked_address() {
    let server = Server::fine().await;
    let (through, asked) = proxy(200).await;
    let at = Proxy::at(format!("http://{}", through.address)).unwrap().basic("me", &"pass".into());
    let url = format!("http://target.example:{}/x", server.port());
    for (at, target) in [(at.clone(), "127.0.0.1"), (at.resolves_names(), "target.example")] {
        let client = builder().proxy(at).resolver(local).build().unwrap();
        let answer = client.send(&guard(), Request::get(&url).unwrap()).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.peer()), (200, Some(through.address)));
        let head = asked.lock().unwrap().pop().unwrap();
        assert!(head.starts_with(&format!("CONNECT {target}:{} HTTP/1.1\r\n", server.port())), "{head}");
        assert!(head.contains("\r\nProxy-Authorization: Basic bWU6cGFzcw==\r\n"), "{head}");
    }
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.header("proxy-authorization").is_none()));
    assert_eq!(seen[0].header("host"), Some(&*format!("target.example:{}", server.port())));
}

/// SEC-3: behind a proxy the rules hold too, and for the proxy itself.
#[tokio::test]
async fn sec_3_a_proxy_is_no_way_around_the_rules() {
    let (through, asked) = proxy(200).await;
    let at = || Proxy::at(format!("http://{}", through.address)).unwrap();
    let only_proxy = || Egress::default().allow("127.0.0.1".parse().unwrap()).ports([through.port()]);
    let refused = async |client: HttpClient, url: &str| {
        let error = client.send(&guard(), Request::get(url).unwrap()).await.unwrap_err();
        assert!(error.last().unwrap().refusal().is_some(), "{url}: {error:?}");
    };
    let client = || HttpClient::builder().egress(only_proxy()).proxy(at());
    refused(client().build().unwrap(), "http://10.0.0.1/").await;
    refused(client().resolver(local).build().unwrap(), "http://inner.example/").await;
    refused(client().proxy(at().resolves_names()).build().unwrap(), "http://169.254.169.254/").await;
    refused(HttpClient::builder().proxy(at()).build().unwrap(), "http://8.8.8.8/").await;
    assert!(asked.lock().unwrap().is_empty());
}

/// ADP-1: a proxy that refuses: certainly not served.
#[tokio::test]
async fn adp_1_a_proxy_that_refuses_is_a_fault_of_the_way() {
    let (through, _) = proxy(407).await;
    let client = builder().proxy(Proxy::at(format!("http://{}", through.address)).unwrap()).build().unwrap();
    let error = client.send(&guard(), Request::post("http://127.0.0.1:1/").unwrap()).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::Proxy(why) if &**why == "it answered 407"));
    assert_eq!((error.ran(), error.attempts()), (Ran::No, 3));
    for url in ["https://proxy.example", "http://user@proxy.example", "proxy", "socks5://proxy.example"] {
        assert!(Proxy::at(url).is_err(), "{url}");
    }
}
