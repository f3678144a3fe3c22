use std::fs;

use super::*;

fn opened(keyring: &Keyring, sealed: &SealedSecret, owner: &str) -> Option<String> {
    keyring.unseal(sealed, owner).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// SEC-2: what is sealed is not the secret, opens with the same key for the same owner, and with nothing else.
#[test]
fn sec_2_secrets_open_for_their_owner_only() {
    let folder = tempfile::TempDir::new().unwrap();
    assert!(Keyring::read(folder.path()).unwrap().is_none());
    let keyring = Keyring::make(folder.path()).unwrap();
    let sealed = keyring.seal(b"s3cr3t", "billing").unwrap();
    assert!(!sealed.0.windows(6).any(|part| part == b"s3cr3t"));
    assert_eq!(opened(&keyring, &sealed, "billing").as_deref(), Some("s3cr3t"));
    assert_eq!(opened(&keyring, &sealed, "mail"), None);
    assert_ne!(keyring.seal(b"s3cr3t", "billing"), Some(sealed.clone()), "never twice the same");
    let again = Keyring::read(folder.path()).unwrap().unwrap();
    assert_eq!(opened(&again, &sealed, "billing").as_deref(), Some("s3cr3t"), "the key stays");
    for at in 0..sealed.0.len() {
        let mut broken = sealed.clone();
        broken.0[at] ^= 1;
        assert_eq!(keyring.unseal(&broken, "billing"), None, "byte {at}");
        assert_eq!(keyring.unseal(&SealedSecret(sealed.0[..at].to_vec()), "billing"), None, "cut at {at}");
    }
    let elsewhere = tempfile::TempDir::new().unwrap();
    assert_eq!(Keyring::make(elsewhere.path()).unwrap().unseal(&sealed, "billing"), None);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path().join("secret.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let whole = fs::read(elsewhere.path().join("secret.key")).unwrap();
    for wrong in [&b"short"[..], b"", &whole[..whole.len() - 1], &whole[1..], b"seawall keys\n"] {
        fs::write(elsewhere.path().join("secret.key"), wrong).unwrap();
        assert!(Keyring::read(elsewhere.path()).unwrap_err().to_string().contains("restore it"));
    }
}

/// SEC-2, API-2: the file of the first version is one key, and what it has sealed opens still, also when there are others.
#[test]
fn api_2_a_key_that_stands_alone_is_read_as_the_first() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("secret.key"), [7; 32]).unwrap();
    let keyring = Keyring::read(folder.path()).unwrap().unwrap();
    let mut old = keyring.seal(b"s3cr3t", "billing").unwrap();
    old.0.drain(1..5);
    old.0[0] = 1;
    assert_eq!((key_of(&old), opened(&keyring, &old, "billing").as_deref()), (Some(1), Some("s3cr3t")));
    assert_eq!(keyring.add_key().unwrap(), 2);
    let again = Keyring::read(folder.path()).unwrap().unwrap();
    assert_eq!(opened(&again, &old, "billing").as_deref(), Some("s3cr3t"));
}

/// SEC-2. Trap "a key that can never be changed": a new key seals, an old one opens until it is dropped, and what the process
/// has in hand opens after that too.
#[test]
fn sec_2_keys_change_and_both_open_until_the_old_one_is_dropped() {
    let folder = tempfile::TempDir::new().unwrap();
    let keyring = Keyring::make(folder.path()).unwrap();
    let old = keyring.seal(b"s3cr3t", "billing").unwrap();
    assert_eq!(keyring.reseal(&old, "billing"), None, "it is sealed with the newest");
    assert_eq!((keyring.add_key().unwrap(), keyring.newest()), (2, 2));
    assert_eq!(keyring.on_disk().unwrap(), [1, 2]);
    let new = keyring.reseal(&old, "billing").unwrap();
    assert_eq!((key_of(&old), key_of(&new)), (Some(1), Some(2)));
    assert_eq!(keyring.reseal(&old, "mail"), None, "another's can't be sealed anew either");
    let both = Keyring::read(folder.path()).unwrap().unwrap();
    for sealed in [&old, &new] {
        assert_eq!(opened(&both, sealed, "billing").as_deref(), Some("s3cr3t"));
    }
    keyring.drop_old_keys().unwrap();
    assert_eq!(keyring.on_disk().unwrap(), [2]);
    assert_eq!(opened(&keyring, &old, "billing").as_deref(), Some("s3cr3t"), "in this process");
    let one = Keyring::read(folder.path()).unwrap().unwrap();
    assert_eq!((opened(&one, &old, "billing"), opened(&one, &new, "billing")), (None, Some("s3cr3t".into())));
}
