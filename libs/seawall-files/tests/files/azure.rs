//! Files in Azure Blob Storage, as Azurite has it.

use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path;
use object_store::{Attribute, ObjectStore, ObjectStoreExt};
use seawall_files::{AzureAccount, FileBody, FileErrorKind, FileStore};
use seawall_testkit::servers::Azurite;

use crate::common::{azure_account, files, noise, storage};

fn bare(server: &Azurite, container: &str) -> impl ObjectStore {
    let builder = MicrosoftAzureBuilder::new().with_http_connector(seawall_files::StoreConnector::default());
    let builder = builder.with_account(Azurite::ACCOUNT).with_access_key(Azurite::KEY);
    builder.with_container_name(container).with_endpoint(server.url()).with_allow_http(true).build().unwrap()
}

/// ADP-8: small and large files are the same on both sides, with their content type, and deleting them twice is no error.
#[tokio::test]
async fn adp_8_files_in_azure_are_uploaded_downloaded_and_deleted() {
    let server = Azurite::shared();
    let store = files("Azure").part_bytes(5 << 20).azure(&azure_account(server, "happy")).unwrap();
    let storage = storage(store).build().unwrap();
    for size in [1, 70_000, (11 << 20) + 3] {
        let bytes = noise(size as u64, size);
        let stored = storage.upload_file("a plan.pdf", Some(size as u64), bytes.clone()).await.unwrap();
        let path = Path::parse(storage.key(&stored.id)).unwrap();
        let found = bare(server, "happy").get(&path).await.unwrap();
        assert_eq!(
            found.attributes.get(&Attribute::ContentType).unwrap().as_ref(),
            "application/pdf",
            "{size}"
        );
        assert!(found.bytes().await.unwrap() == bytes, "{size}");
        let content = storage.download_file(&stored.id).await.unwrap();
        assert!(content.body.collect(80 << 20).await.unwrap() == bytes, "{size}");
        let part = storage.download_range(&stored.id, 0..1).await.unwrap();
        assert_eq!(part.body.collect(10).await.unwrap(), bytes[..1]);
        assert!(storage.delete_file(&stored.id).await.is_deleted());
        assert!(storage.delete_file(&stored.id).await.is_deleted());
        assert!(!storage.exists(&stored.id).await.unwrap());
    }
}

/// ADP-8: a wrong key is a permission error, and a container that is not there is not found.
#[tokio::test]
async fn adp_8_a_wrong_key_of_azure_is_a_permission_error() {
    let server = Azurite::shared();
    server.create_container("refused").unwrap();
    let account = AzureAccount::new(Azurite::ACCOUNT, "refused").endpoint(server.url());
    let store = files("Azure").azure(&account.access_key("d3Jvbmc=")).unwrap();
    let error = store.upload("a.bin", "x/y", &mut FileBody::from("x")).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Permission, "{error}");
}
