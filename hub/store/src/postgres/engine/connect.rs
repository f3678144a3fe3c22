//! New connections, with the settings that the hub relies on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, TlsLevel};
use super::fault::{self, DatabaseFault};
use super::session::{ServerProcess, Session, SessionInfo, Timeline};
use super::telemetry::ConnectTelemetry;
use crate::OpenError;

/// The longest time from the first packet to a session that can be used.
pub(in crate::postgres) const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The settings of every session. Nothing is taken for granted that a role, a database or a provider may have changed. Whoever
/// has chosen `remote_apply` waits for more than the disk, and keeps it.
const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
    SET statement_timeout = '10s'; SET lock_timeout = '500ms'; SET idle_in_transaction_session_timeout = '2s';
    SET jit = off; SET client_min_messages = warning";

/// What serves the connection, and on which timeline of the server: the first half of the name of the log that it writes.
const INFO: &str = "SELECT pid, backend_start, (SELECT system_identifier FROM pg_control_system()) AS system,
        ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS timeline
    FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Makes connections to one database.
#[derive(Clone)]
pub(in crate::postgres) struct Connector {
    pub(in crate::postgres) address: Address,
    pub(in crate::postgres) tls: MakeRustlsConnect,
    pub(in crate::postgres) telemetry: Arc<ConnectTelemetry>,
    /// More settings, for what these connections do.
    pub(in crate::postgres) settings: &'static str,
}

/// Why there is no connection.
#[derive(Debug)]
pub(in crate::postgres) enum ConnectError {
    /// The server has refused, or can't be reached.
    Failed(Error),
    /// Nothing answered in time.
    Silent,
}

impl Connector {
    /// Connects, and makes the settings of the session.
    pub(in crate::postgres) async fn connect(&self) -> Result<Session, ConnectError> {
        let opened = timeout(CONNECT_MAX, async {
            let (client, connection) = self.address.config.connect(self.tls.clone()).await?;
            let mut socket = JoinSet::new();
            let counted = self.telemetry.open();
            socket.spawn(async move {
                let _counted = counted;
                // Why it ended is told to whoever waits for an answer.
                let _ = connection.await;
            });
            client.batch_execute(SETTINGS).await?;
            client.batch_execute(self.settings).await?;
            let row = client.query_one(INFO, &[]).await?;
            let info = SessionInfo {
                process: ServerProcess { pid: row.get("pid"), started: row.get("backend_start") },
                timeline: Timeline { system: row.get("system"), number: row.get("timeline") },
            };
            Ok(Session::new(client, info, socket))
        });
        match opened.await {
            Ok(Ok(session)) => Ok(session),
            Ok(Err(error)) => Err(ConnectError::Failed(error)),
            Err(_) => Err(ConnectError::Silent),
        }
    }
}

impl ConnectError {
    /// Whether the same may succeed a moment later: the server starts, or is on its way back. A certificate that is not believed
    /// is not believed then either.
    pub(in crate::postgres) fn is_passing(&self) -> bool {
        match self {
            ConnectError::Silent => true,
            ConnectError::Failed(error) => {
                let reason =
                    std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
                let is_of_tls = reason.is_some_and(|reason| reason.kind() == io::ErrorKind::InvalidData);
                !is_of_tls && DatabaseFault::of(error) == DatabaseFault::Connection
            }
        }
    }

    /// Says why the database can't be opened, and what to do.
    pub(in crate::postgres) fn explained(&self, address: &Address) -> OpenError {
        let reason = match self {
            ConnectError::Silent => "nothing answers there".to_owned(),
            ConnectError::Failed(error) => match error.code() {
                Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
                    format!("{}; create it first", fault::text(error))
                }
                Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => {
                    format!("{}; raise `max_connections` of the server", fault::text(error))
                }
                _ => fault::text(error),
            },
        };
        let hint = match address.tls.mode {
            TlsLevel::Disable | TlsLevel::Prefer => "",
            _ => " (over TLS)",
        };
        OpenError(format!("can't connect to the database `{address}`{hint}: {reason}"))
    }
}
