//! The connection of a task, made anew whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::connect::Connector;
use super::node::HubNode;
use super::session::{ServerProcess, Session};

/// The pauses between two tries to connect: short at first, so that a restart of the server is over soon.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The connection of a task.
pub(in crate::postgres) struct Link {
    connector: Connector,
    node: Arc<HubNode>,
    session: Option<Session>,
    /// The process of the server that served the last connection, until it is known to have ended.
    left_behind: Option<ServerProcess>,
    pause: Duration,
}

impl Link {
    pub(in crate::postgres) fn new(connector: Connector, node: Arc<HubNode>) -> Self {
        Link { connector, node, session: None, left_behind: None, pause: PAUSE_MIN }
    }

    /// Returns the connection. If there is none, connects until that succeeds.
    pub(in crate::postgres) async fn session(&mut self) -> &Session {
        if self.session.as_ref().is_some_and(Session::is_closed) {
            self.drop_session();
        }
        if self.session.is_none() {
            let session = self.connected().await;
            self.session = Some(session);
        }
        #[expect(clippy::expect_used, reason = "it was put there above")]
        self.session.as_ref().expect("there is a connection")
    }

    /// Gives up the connection, because nobody knows what its server is about to do.
    pub(in crate::postgres) fn drop_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.left_behind = Some(session.info().process);
        }
    }

    async fn connected(&mut self) -> Session {
        loop {
            match self.connector.connect().await {
                Ok(session) if self.node.is_on(session.info().timeline) => {
                    self.end_left_behind(&session).await;
                    self.pause = PAUSE_MIN;
                    self.connector.telemetry.connected();
                    return session;
                }
                // The server was promoted or restored: the node takes another epoch first.
                Ok(_) => self.node.rejoin(),
                Err(error) => self.connector.telemetry.not_connected(&self.connector.address, &error),
            }
            sleep(jittered(self.pause)).await;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Ends the process that served the connection before, if it still waits for an answer to reach us: it may hold locks.
    async fn end_left_behind(&mut self, session: &Session) {
        if let Some(process) = self.left_behind.take() {
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2";
            // If it can't be ended it ends by itself, after the time limit of a transaction that nobody goes on with.
            let _ = session.rows(end, &[&process.pid, &process.started]).await;
        }
    }
}

/// Returns half of the pause to the whole of it, by chance: hubs that lost the same server don't come back in step.
pub(in crate::postgres) fn jittered(pause: Duration) -> Duration {
    pause / 2 + (pause / 2).mul_f64(f64::from(chance()) / f64::from(u16::MAX))
}

fn chance() -> u16 {
    use std::hash::{BuildHasher, RandomState};
    let [low, high, ..] = RandomState::new().hash_one(0_u8).to_le_bytes();
    u16::from_le_bytes([low, high])
}
