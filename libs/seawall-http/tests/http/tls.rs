//! TLS.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use seawall::{Class, Ran};
use seawall_http::{Cause, HttpClient, HttpError, Request, Resolving, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::server::Server;
use crate::{builder, guard};

/// An authority of the tests.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, in PEM and in DER.
struct Issued {
    pem: String,
    key_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str, expired: bool) -> Issued {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if expired {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// A server with this certificate; `clients`: whose certificates it asks for. Speaks a little HTTP.
async fn server(issued: Issued, clients: Option<&Authority>) -> Server {
    let acceptor = acceptor(issued, clients, &[]);
    Server::raw(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                head.push(byte);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret";
            drop(stream.write_all(answer).await);
            drop(stream.shutdown().await);
        }
    })
    .await
}

fn acceptor(issued: Issued, clients: Option<&Authority>, alpn: &[&str]) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let mut config = builder.with_single_cert(issued.chain, issued.key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Finds every name on this machine.
fn client(tls: Tls) -> HttpClient {
    let local = |_: &str| -> Resolving { Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) }) };
    builder().resolver(local).tls(tls).build().unwrap()
}

fn believing(authority: &Authority) -> Tls {
    Tls::no_roots().root_pem(authority.0.pem().as_bytes()).unwrap()
}

async fn post(client: &HttpClient, host: &str, server: &Server) -> Result<usize, (HttpError, Ran, u32)> {
    let request = Request::post(format!("https://{host}:{}/", server.port())).unwrap().body("x");
    let answer = client.send(&guard(), request).await;
    answer.map(|answer| answer.body().len()).map_err(|error| {
        let (ran, attempts) = (error.ran(), error.attempts());
        (error.into_last().unwrap(), ran, attempts)
    })
}

/// ADP-1: custom CA: a certificate is believed for its own name, from an authority that is believed, while it holds.
#[tokio::test]
async fn adp_1_a_certificate_is_believed_only_if_everything_fits() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = server(ours.issue("peer.example", false), None).await;
    assert_eq!(post(&client(believing(&ours)), "peer.example", &good).await.unwrap(), 6);
    assert_eq!(post(&client(believing(&ours)), "peer.example.", &good).await.unwrap(), 6);

    let expired = server(ours.issue("peer.example", true), None).await;
    let wrong = [
        (believing(&ours), "other.example", &good),
        (believing(&ours), "127.0.0.1", &good),
        (believing(&theirs), "peer.example", &good),
        (Tls::mozilla(), "peer.example", &good),
        (Tls::no_roots(), "peer.example", &good),
        (believing(&ours), "peer.example", &expired),
    ];
    for (tls, host, server) in wrong {
        let (error, ran, attempts) = post(&client(tls), host, server).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Tls(_)), "{error:?}");
        // Certainly not served, so that even a POST may be tried again.
        assert_eq!((ran, error.fault().class(), attempts), (Ran::No, Class::Io, 3), "{error:?}");
    }
    let by_address = server(ours.issue("127.0.0.1", false), None).await;
    assert_eq!(post(&client(believing(&ours)), "127.0.0.1", &by_address).await.unwrap(), 6);
}

/// ADP-1: mTLS: whoever shows no certificate, or one of a stranger, is not served, and knows it.
#[tokio::test]
async fn adp_1_a_client_shows_who_it_is() {
    let (ours, strangers) = (Authority::new(), Authority::new());
    let server = server(ours.issue("peer.example", false), Some(&ours)).await;
    let me = ours.issue("me.example", false);
    let known = believing(&ours).identity_pem(me.pem.as_bytes(), me.key_pem.as_bytes()).unwrap();
    assert_eq!(post(&client(known), "peer.example", &server).await.unwrap(), 6);

    let other = strangers.issue("me.example", false);
    let stranger = believing(&ours).identity_pem(other.pem.as_bytes(), other.key_pem.as_bytes()).unwrap();
    for tls in [believing(&ours), stranger] {
        let (error, ran, _) = post(&client(tls), "peer.example", &server).await.unwrap_err();
        // By TLS 1.3 the refusal comes when the request may be on its way; it may also get lost in a reset.
        let is_alert = error.to_string().contains("alert");
        assert_eq!(ran, if is_alert { Ran::No } else { Ran::Unknown }, "{error:?}");
    }
}

/// ADP-1: a peer that does not speak TLS.
#[tokio::test]
async fn adp_1_a_peer_without_tls_is_not_served_in_clear() {
    let plain = Server::fine().await;
    let (error, ran, _) = post(&client(Tls::mozilla()), "peer.example", &plain).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Tls(_)) && ran == Ran::No, "{error:?}");
    assert!(plain.seen().is_empty());
}

/// ADP-1: what can't be read is refused when it is read, and no key is shown.
#[test]
fn adp_1_certificates_and_keys_are_read_at_once() {
    let authority = Authority::new();
    let me = authority.issue("me.example", false);
    assert!(Tls::mozilla().root_pem(b"").is_err() && Tls::mozilla().root_pem(b"no pem").is_err());
    assert!(Tls::mozilla().identity_pem(me.pem.as_bytes(), b"").is_err());
    assert!(Tls::mozilla().identity_pem(b"", me.key_pem.as_bytes()).is_err());
    let other = authority.issue("you.example", false);
    let mixed = Tls::mozilla().identity_pem(me.pem.as_bytes(), other.key_pem.as_bytes()).unwrap();
    assert!(HttpClient::builder().tls(mixed).build().is_err());
    let tls = Tls::mozilla().identity_pem(me.pem.as_bytes(), me.key_pem.as_bytes()).unwrap();
    assert!(format!("{tls:?}").ends_with("identity: true }"));
}

/// ADP-1: HTTP/2 where the peer offers it: many calls at once on one connection.
#[cfg(feature = "http2")]
#[tokio::test]
async fn adp_1_calls_to_a_peer_with_http_2_share_a_connection() {
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let authority = Authority::new();
    let acceptor = acceptor(authority.issue("peer.example", false), None, &["h2"]);
    let server = Server::raw(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(stream).await.unwrap();
            let service =
                hyper::service::service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                    assert_eq!(request.version(), http::Version::HTTP_2);
                    let body = http_body_util::BodyExt::collect(request.into_body()).await?.to_bytes();
                    Ok::<_, hyper::Error>(http::Response::new(http_body_util::Full::new(body)))
                });
            let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            drop(serving.serve_connection(TokioIo::new(stream), service).await);
        }
    })
    .await;
    let (client, guard) = (client(believing(&authority)), guard());
    let url = format!("https://peer.example:{}/", server.port());
    // Until a connection stands nobody knows what the peer speaks.
    client.send(&guard, Request::post(&url).unwrap()).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (client, guard) = (client.clone(), guard.clone());
        let request = Request::post(&url).unwrap().body(format!("number {number}"));
        calls.spawn(async move {
            let answer = client.send(&guard, request).await.unwrap();
            assert_eq!(answer.body(), &format!("number {number}"));
        });
    }
    calls.join_all().await;
    assert_eq!(server.connections(), 1);
}
