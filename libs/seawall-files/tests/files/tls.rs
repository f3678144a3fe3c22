//! Stores behind TLS, as they are everywhere but in tests.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use seawall_files::{FileErrorKind, S3Account};
use seawall_testkit::servers::SeaweedS3;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::common::{bare_s3, bytes_in, files, noise, storage};

/// A proxy with TLS before a server, with a certificate for a name. Ends when it is dropped.
struct TlsProxy {
    port: u16,
    authority_pem: String,
    _tasks: JoinSet<()>,
}

impl TlsProxy {
    async fn start(server: &SeaweedS3, name: &str) -> TlsProxy {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let issued = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![issued.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let (acceptor, listener) =
            (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let port = listener.local_addr().unwrap().port();
        let target = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, target) = (acceptor.clone(), target.clone());
                connections.spawn(async move {
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let mut server = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        TlsProxy { port, authority_pem: authority.pem(), _tasks: tasks }
    }

    fn account(&self, bucket: &str) -> S3Account {
        let (key, secret) = SeaweedS3::WRITER;
        S3Account::new(bucket).endpoint(format!("https://localhost:{}", self.port)).credentials(key, secret)
    }
}

/// ADP-8: files go to a store behind TLS whose authority is trusted, whole and in parts, and the server has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_8_files_go_to_a_store_behind_tls() {
    let server = SeaweedS3::shared();
    let bare = bare_s3(server, "encrypted");
    let proxy = TlsProxy::start(server, "localhost").await;
    let account = proxy.account("encrypted").root_certificate(&proxy.authority_pem);
    let storage = storage(files("S3").s3(&account).unwrap()).build().unwrap();
    // The second one is larger than a part.
    for size in [100_000, 20 << 20] {
        let bytes = noise(3, size);
        let stored = storage.upload_file("report.bin", None, bytes.clone()).await.unwrap();
        let content = storage.download_file(&stored.id).await.unwrap();
        assert!(content.body.collect(32 << 20).await.unwrap() == bytes, "{size} bytes come back");
        let found = bytes_in(&*bare, &storage.key(&stored.id)).await.unwrap();
        assert!(found == bytes, "the server has {size} bytes");
    }
}

/// ADP-8: a store whose certificate is not trusted, or is for another name, gets nothing, and the error says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_8_a_store_that_is_not_trusted_gets_nothing() {
    let server = SeaweedS3::shared();
    let unknown = TlsProxy::start(server, "localhost").await;
    let another = TlsProxy::start(server, "elsewhere.example").await;
    let cases = [
        (unknown.account("refused"), "UnknownIssuer"),
        (another.account("refused").root_certificate(&another.authority_pem), "not valid for name"),
    ];
    for (account, reason) in cases {
        let storage = storage(files("S3").s3(&account).unwrap()).build().unwrap();
        let error = storage.upload_file("report.bin", None, "x").await.unwrap_err();
        let mut text = format!("{error}");
        let mut next = std::error::Error::source(&error);
        while let Some(cause) = next {
            text.push_str(&format!(": {cause}"));
            next = cause.source();
        }
        assert!(text.contains(reason), "{reason}: {text}");
        assert!(!matches!(error.kind(), FileErrorKind::NotFound | FileErrorKind::Permission), "{error:?}");
    }
}
