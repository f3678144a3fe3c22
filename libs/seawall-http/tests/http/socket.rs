//! Connections for other protocols than HTTP: the same door, the same rules.

use seawall_http::{Cause, HttpClient, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client;
use crate::server::Server;

/// A server that says a word and repeats what it hears.
async fn parrot() -> Server {
    Server::raw(|_, mut stream| async move {
        let _ = stream.write_all(b"hello\n").await;
        let mut word = [0; 4];
        while stream.read_exact(&mut word).await.is_ok() && stream.write_all(&word).await.is_ok() {}
    })
    .await
}

/// SEC-3, PRM-10: whatever is spoken, what the rules forbid gets no connection, also by a name that leads there.
#[tokio::test]
async fn prm_10_no_other_protocol_reaches_what_is_forbidden() {
    let canary = parrot().await;
    let named = |_: &str| -> Resolving { Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) }) };
    let strict = HttpClient::builder().resolver(named).build().unwrap();
    for host in ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]", "mail.example"] {
        let error = strict.connect(host, canary.port()).await.unwrap_err();
        assert!(error.refusal().is_some(), "{host}: {error}");
    }
    for host in ["", "a b", "user@host", "host/path"] {
        let error = strict.connect(host, 25).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Request(_)) || error.refusal().is_some(), "{host}: {error}");
    }
    assert_eq!(canary.connections(), 0);
    let mut socket = client().connect("127.0.0.1", canary.port()).await.unwrap();
    let mut word = [0; 6];
    socket.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"hello\n");
    socket.write_all(b"ping").await.unwrap();
    socket.read_exact(&mut word[..4]).await.unwrap();
    assert_eq!((&word[..4], socket.is_secure()), (&b"ping"[..], false));
}

/// ADP-1: a server that does not speak TLS is not believed to.
#[cfg(feature = "tls")]
#[tokio::test]
async fn adp_1_a_socket_is_secure_or_not_at_all() {
    let canary = parrot().await;
    let socket = client().connect("127.0.0.1", canary.port()).await.unwrap();
    let error = socket.secure(None).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Tls(_)), "{error}");
}
