//! Bytes on their way.

use std::io;

use bytes::Bytes;
use seawall_files::FileBody;

use crate::common::noise;

/// ADP-8: bytes, texts, readers and files turn into bodies, and a body is refused where it is larger than its reader wants.
#[tokio::test]
async fn adp_8_bodies_are_made_of_what_programs_have() {
    let bytes = noise(3, 200_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    for body in [
        FileBody::from(bytes.clone()),
        FileBody::from(Bytes::from(bytes.clone())),
        FileBody::from_path(file.path()),
        FileBody::from_reader(io::Cursor::new(bytes.clone())),
    ] {
        let mut copy = Vec::new();
        assert_eq!(body.write_to(&mut copy).await.unwrap(), 200_000);
        assert!(copy == bytes);
    }
    assert_eq!(FileBody::from("text").collect(4).await.unwrap(), "text");
    let error = FileBody::from("text").collect(3).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let missing = FileBody::from_path("/nowhere/at/all").collect(3).await.unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
