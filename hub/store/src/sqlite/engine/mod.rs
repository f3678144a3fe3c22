//! The one thread that writes: its transactions, the schema of the file, and the data directory that holds it.

pub(crate) mod damage;
pub(crate) mod place;
pub(crate) mod room;
#[cfg(seawall_sabotage)]
pub(crate) mod sabotage;
pub(crate) mod schema;
pub(crate) mod telemetry;
pub(crate) mod writer;
