//! Secrets at rest.
//!
//! A secret is sealed before it is first written, with a key that lies beside the database in a file of its own, readable
//! by nobody else. Whoever has the database alone has nothing.
//!
//! # How keys change
//! The file holds keys by number, and whatever is sealed says which one it was. A new key is on the disk before anything is
//! sealed with it, and an old one leaves the file when nothing in the database needs it: whoever dies in between has both. The
//! process keeps the old one in memory for as long as it lives, for those who have read a secret before it was sealed anew.

pub(crate) mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::sync::RwLock;
use sha2::{Digest, Sha256};

use self::file::{FIRST, KeyFile};

/// The first byte of what is sealed. At first there was one key, and what it sealed does not say which.
const FORM_ONE_KEY: u8 = 1;
/// Four bytes with the number of the key follow.
const FORM: u8 = 2;
/// What is hashed before a key, so that its fingerprint is good for nothing else.
const FINGERPRINT: &[u8] = b"seawall secret.key";

/// The keys that seal secrets. A handle: clones share everything. Shows nothing of itself.
#[derive(Clone)]
pub struct Keyring {
    inner: Arc<KeyringInner>,
}

struct KeyringInner {
    folder: PathBuf,
    keys: RwLock<BTreeMap<u32, LessSafeKey>>,
    /// Held by those who register something, from sealing until it is kept, and alone by whoever changes the keys: nothing is
    /// written that was sealed with a key that goes.
    sealing: tokio::sync::RwLock<()>,
}

impl Keyring {
    /// Reads the keys from `secret.key` in this folder, if it is there.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        KeyFile::read(folder)?.map(|file| Self::of(folder, &file)).transpose()
    }

    /// Makes `secret.key` in this folder, with one key.
    pub fn make(folder: &Path) -> io::Result<Self> {
        let file = KeyFile::fresh()?;
        file.write(folder)?;
        Self::of(folder, &file)
    }

    fn of(folder: &Path, file: &KeyFile) -> io::Result<Self> {
        let usable = |(number, key): (u32, &[u8; file::KEY_LEN])| {
            let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| io::Error::other("no key"))?;
            Ok((number, LessSafeKey::new(key)))
        };
        let keys = file.keys().map(usable).collect::<io::Result<_>>()?;
        let (folder, sealing) = (folder.to_owned(), tokio::sync::RwLock::new(()));
        Ok(Keyring { inner: Arc::new(KeyringInner { folder, keys: RwLock::new(keys), sealing }) })
    }

    /// The number of the key that seals.
    #[must_use]
    pub fn newest(&self) -> u32 {
        let keys = self.inner.keys.read();
        keys.last_key_value().map_or(FIRST, |(number, _)| *number)
    }

    /// The numbers of all keys that are in the file.
    pub fn on_disk(&self) -> io::Result<Vec<u32>> {
        Ok(self.file()?.keys().map(|(number, _)| number).collect())
    }

    /// The fingerprint of the key that seals.
    pub fn fingerprint(&self) -> io::Result<[u8; 32]> {
        let newest = self.fingerprints()?.pop();
        newest.ok_or_else(|| io::Error::other("`secret.key` has no key"))
    }

    /// The fingerprints of all keys that are in the file, the one that seals last. They tell nothing about the keys.
    pub fn fingerprints(&self) -> io::Result<Vec<[u8; 32]>> {
        let print = |(_, key): (u32, &[u8; file::KEY_LEN])| {
            Sha256::new().chain_update(FINGERPRINT).chain_update(key).finalize().into()
        };
        Ok(self.file()?.keys().map(print).collect())
    }

    /// Adds a key, which seals from now on. When this returns, it is on the disk.
    pub fn add_key(&self) -> io::Result<u32> {
        let mut file = self.file()?;
        let number = file.add()?;
        file.write(&self.inner.folder)?;
        let more = Self::of(&self.inner.folder, &file)?;
        let mut more = more.inner.keys.write();
        self.inner.keys.write().append(&mut more);
        Ok(number)
    }

    /// Takes all keys but the newest out of the file. Only if nothing that is kept needs them.
    pub fn drop_old_keys(&self) -> io::Result<()> {
        self.file()?.newest_only().write(&self.inner.folder)
    }

    fn file(&self) -> io::Result<KeyFile> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "`secret.key` is missing");
        KeyFile::read(&self.inner.folder)?.ok_or_else(gone)
    }

    /// For those who register something: from before they seal or read a secret until it is kept.
    pub async fn sealing(&self) -> impl Drop + Send + use<'_> {
        self.inner.sealing.read().await
    }

    /// For whoever changes the keys: nobody registers anything meanwhile.
    pub async fn changing(&self) -> impl Drop + Send + use<'_> {
        self.inner.sealing.write().await
    }

    /// Seals a secret. `owner` is whose it is: sealed for one, it can't be opened as another's.
    #[must_use]
    pub fn seal(&self, secret: &[u8], owner: &str) -> Option<SealedSecret> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = secret.to_vec();
        let (once, owner) = (Nonce::assume_unique_for_key(nonce), Aad::from(owner.as_bytes()));
        let keys = self.inner.keys.read();
        let (number, key) = keys.last_key_value()?;
        key.seal_in_place_append_tag(once, owner, &mut sealed).ok()?;
        let mut out = vec![FORM];
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&nonce);
        out.append(&mut sealed);
        Some(SealedSecret(out))
    }

    /// Opens what was sealed for this owner.
    #[must_use]
    pub fn unseal(&self, sealed: &SealedSecret, owner: &str) -> Option<Vec<u8>> {
        let (number, rest) = parts(sealed)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>()?;
        let mut body = body.to_vec();
        let (once, owner) = (Nonce::assume_unique_for_key(*nonce), Aad::from(owner.as_bytes()));
        let keys = self.inner.keys.read();
        let length = keys.get(&number)?.open_in_place(once, owner, &mut body).ok()?.len();
        body.truncate(length);
        Some(body)
    }

    /// Seals anew what another key has sealed; nothing if it can't be opened, or needs no other key.
    #[must_use]
    pub fn reseal(&self, sealed: &SealedSecret, owner: &str) -> Option<SealedSecret> {
        if key_of(sealed) == Some(self.newest()) {
            return None;
        }
        self.seal(&self.unseal(sealed, owner)?, owner)
    }
}

/// The number of the key that has sealed it.
#[must_use]
pub fn key_of(sealed: &SealedSecret) -> Option<u32> {
    parts(sealed).map(|(number, _)| number)
}

fn parts(sealed: &SealedSecret) -> Option<(u32, &[u8])> {
    match sealed.0.split_first()? {
        (&FORM_ONE_KEY, rest) => Some((FIRST, rest)),
        (&FORM, rest) => rest.split_first_chunk().map(|(number, rest)| (u32::from_be_bytes(*number), rest)),
        _ => None,
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}
