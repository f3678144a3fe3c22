//! Connections over TLS.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use seawall_testkit::servers::Postgres;
use tempfile::TempDir;

use super::place::*;
use crate::suite::fixtures::*;

/// Writes an authority, another one that nobody knows, and the certificate of a server that the first has signed for this host.
fn write_certificates(folder: &Path, host: &str) {
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (known, unknown, key) = (authority(), authority(), KeyPair::generate().unwrap());
    let server = CertificateParams::new([host.to_owned()]).unwrap().signed_by(&key, &known).unwrap();
    fs::write(folder.join("ca.pem"), known.pem()).unwrap();
    fs::write(folder.join("other.pem"), unknown.pem()).unwrap();
    fs::write(folder.join("server.pem"), server.pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    fs::set_permissions(folder.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    // The server has a user of its own where the test is root.
    if fs::metadata(folder).unwrap().uid() == 0 {
        assert!(
            Command::new("chown").arg("postgres").arg(folder.join("server.key")).status().unwrap().success()
        );
    }
}

fn server_with(folder: &Path) -> Postgres {
    let file = |name: &str| folder.join(name).display().to_string();
    Postgres::builder()
        .setting("ssl=on")
        .setting(&format!("ssl_cert_file={}", file("server.pem")))
        .setting(&format!("ssl_key_file={}", file("server.key")))
        .start()
        .unwrap()
}

/// HUB-15: the certificate of the server is checked as far as `sslmode` says: not at all, its authority, or its host too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_the_certificate_of_the_server_is_checked_as_far_as_asked() {
    for (host, is_right) in [("127.0.0.1", true), ("db.example", false)] {
        let (certificates, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        write_certificates(certificates.path(), host);
        let at = certificates.path().to_owned();
        let server = blocking(move || server_with(&at)).await;
        let database = server.database().unwrap();
        let root = |name: &str| certificates.path().join(name).display().to_string();
        let (known, other) = (root("ca.pem"), root("other.pem"));
        for (query, succeeds) in [
            ("sslmode=disable".to_owned(), true),
            ("sslmode=require".to_owned(), true),
            (format!("sslmode=verify-ca&sslrootcert={known}"), true),
            (format!("sslmode=verify-full&sslrootcert={known}"), is_right),
            (format!("sslmode=require&sslrootcert={other}"), false),
            (format!("sslmode=verify-ca&sslrootcert={other}"), false),
            ("sslmode=verify-full".to_owned(), false),
        ] {
            let url = format!("{}?{query}", database.url());
            match open(&url, folder.path(), "hub").await {
                Ok(store) => {
                    assert!(succeeds, "{host}: {query}");
                    store.commit(WritePriority::Admin, entry(&query)).await.unwrap();
                }
                Err(error) => {
                    assert!(!succeeds, "{host}: {query}: {error}");
                    assert!(error.to_string().contains("certificate"), "{query}: {error}");
                }
            }
        }
    }
}
