//! Secrets at rest.
//!
//! A secret is sealed before it is first written, with a key that lies beside the database in a file of its own, readable
//! by nobody else. Whoever has the database alone has nothing.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use seawall_hub_core::domain::service::Sealed;

const KEY_LEN: usize = 32;
/// The first byte of what is sealed, so that another way can come later.
const FORM: u8 = 1;

/// The key that seals secrets. Shows nothing of itself.
#[derive(Clone)]
pub struct Keyring {
    key: Arc<LessSafeKey>,
}

impl Keyring {
    /// Reads the key from `secret.key` in this folder, or makes one.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join("secret.key");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut fresh = [0; KEY_LEN];
                SystemRandom::new()
                    .fill(&mut fresh)
                    .map_err(|_| io::Error::other("no randomness to be had"))?;
                write_private(&path, &fresh)?;
                fresh.to_vec()
            }
            Err(error) => return Err(error),
        };
        let wrong = || {
            io::Error::new(io::ErrorKind::InvalidData, "`secret.key` is no key; restore it from the backup")
        };
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| wrong())?;
        Ok(Keyring { key: Arc::new(LessSafeKey::new(key)) })
    }

    /// Seals a secret. `owner` is whose it is: sealed for one, it can't be opened as another's.
    #[must_use]
    pub fn seal(&self, secret: &[u8], owner: &str) -> Option<Sealed> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = secret.to_vec();
        let (once, owner) = (Nonce::assume_unique_for_key(nonce), Aad::from(owner.as_bytes()));
        self.key.seal_in_place_append_tag(once, owner, &mut sealed).ok()?;
        let mut out = vec![FORM];
        out.extend_from_slice(&nonce);
        out.append(&mut sealed);
        Some(Sealed(out))
    }

    /// Opens what was sealed for this owner.
    #[must_use]
    pub fn unseal(&self, sealed: &Sealed, owner: &str) -> Option<Vec<u8>> {
        let (form, rest) = sealed.0.split_first()?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *form != FORM {
            return None;
        }
        let mut body = body.to_vec();
        let (once, owner) = (Nonce::assume_unique_for_key(*nonce), Aad::from(owner.as_bytes()));
        let length = self.key.open_in_place(once, owner, &mut body).ok()?.len();
        body.truncate(length);
        Some(body)
    }
}

/// A file that only its owner can read, whole or not at all: it gets its name when it is on the disk. Whoever dies before
/// leaves nothing that counts, and whoever dies after has the key to all that is sealed from then on.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("key.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    // The name is part of the folder.
    #[cfg(unix)]
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())?;
    Ok(())
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-2: what is sealed is not the secret, opens with the same key for the same owner, and with nothing else.
    #[test]
    fn sec_2_secrets_open_for_their_owner_only() {
        let folder = tempfile::TempDir::new().unwrap();
        let keyring = Keyring::open(folder.path()).unwrap();
        let sealed = keyring.seal(b"s3cr3t", "billing").unwrap();
        assert!(!sealed.0.windows(6).any(|part| part == b"s3cr3t"));
        assert_eq!(keyring.unseal(&sealed, "billing").as_deref(), Some(&b"s3cr3t"[..]));
        assert_eq!(keyring.unseal(&sealed, "mail"), None);
        assert_ne!(keyring.seal(b"s3cr3t", "billing"), Some(sealed.clone()), "never twice the same");
        let again = Keyring::open(folder.path()).unwrap();
        assert_eq!(again.unseal(&sealed, "billing").as_deref(), Some(&b"s3cr3t"[..]), "the key stays");
        let mut broken = sealed.clone();
        *broken.0.last_mut().unwrap() ^= 1;
        assert_eq!(keyring.unseal(&broken, "billing"), None);
        let elsewhere = tempfile::TempDir::new().unwrap();
        assert_eq!(Keyring::open(elsewhere.path()).unwrap().unseal(&sealed, "billing"), None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join("secret.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(elsewhere.path().join("secret.key"), b"short").unwrap();
        assert!(Keyring::open(elsewhere.path()).unwrap_err().to_string().contains("restore it"));
    }
}
