//! What the hub wants to know of the database itself: whether it answers, and which key has sealed its secrets.

use seawall_hub_core::port::store::StoreError;

use super::Postgres;
use super::engine::connect::ConnectError;
use super::engine::fault;

impl Postgres {
    /// Returns the fingerprint of the key that has sealed the secrets, if it was noted.
    pub(crate) async fn secret(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let read = self.read((), |session, ()| {
            Box::pin(async move {
                let row = session.find("SELECT secret FROM meta", &[]).await?;
                Ok::<Option<Vec<u8>>, tokio_postgres::Error>(row.and_then(|row| row.get(0)))
            })
        });
        read.await
    }

    /// Notes the fingerprint of the key that seals the secrets. Nothing else is written with it, and twice is as good as once.
    pub(crate) async fn put_secret(&self, fingerprint: &[u8; 32]) -> Result<(), StoreError> {
        let session = self.inner.connector.connect().await.map_err(|error| match error {
            ConnectError::Failed(error) => fault::translate(&error),
            ConnectError::Silent => StoreError::Unavailable { sent: false },
        })?;
        let note = "UPDATE meta SET secret = $1 WHERE secret IS DISTINCT FROM $1";
        let noted = session.run(note, &[&fingerprint.as_slice()]).await;
        noted.map(drop).map_err(|error| fault::translate(&error))
    }

    /// Returns why the database can't be used at the moment, by the beats of the node. Nobody is asked for this.
    pub(crate) fn unreachable(&self) -> Option<String> {
        let contact = self.inner.node.contact();
        let (address, age) = (&self.inner.address, contact.beat_age.as_secs_f64());
        (!contact.is_there).then(|| format!("the database `{address}` has not answered for {age:.1} s"))
    }

    /// Returns the host and the name of the database.
    pub(crate) fn address(&self) -> String {
        self.inner.address.to_string()
    }
}
