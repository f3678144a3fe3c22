//! What a server must have before the hub promises anything on it.

use tokio_postgres::Error;

use super::connect::Connector;
use super::fault;
use super::reader::READERS_MAX;
use super::session::{ServerProcess, Session};
use crate::OpenError;

/// The number of connections of a hub: one that shows that it lives, two that write, and those that read.
const CONNECTIONS: i32 = 3 + READERS_MAX as i32;

/// The oldest version of PostgreSQL that the statements are written for.
const VERSION_MIN: i32 = 140_000;

const FACTS: &str = "SELECT current_setting('server_version_num')::int AS version,
        current_setting('server_version') AS version_text,
        current_setting('server_encoding') AS encoding,
        current_setting('fsync') AS fsync,
        current_setting('full_page_writes') AS full_page_writes,
        current_setting('synchronous_commit') AS synchronous_commit,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS connections,
        (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS connections_of_role,
        (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS connections_of_database";

/// What was found out about a server.
#[derive(Clone, Debug)]
struct ServerFacts {
    version: i32,
    version_text: String,
    encoding: String,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    /// The number of connections that the server, the role and the database allow; a negative one is no limit.
    connections: [(&'static str, i32); 3],
}

/// Refuses a server that may lose what it has acknowledged, or that the hub can't work with.
pub(in crate::postgres) async fn check(session: &Session, connector: &Connector) -> Result<(), OpenError> {
    let failed = |error: Error| OpenError(format!("can't look at the database: {}", fault::text(&error)));
    let facts = facts(session).await.map_err(failed)?;
    if let Some(problem) = problem(&facts) {
        return Err(OpenError(format!("can't use the database `{}`: {problem}", connector.address)));
    }
    let other = connector.connect().await.map_err(|error| error.explained(&connector.address))?;
    let again = session.find("SELECT pg_backend_pid()", &[]).await.map_err(failed)?;
    let again: Option<i32> = again.map(|row| row.get(0));
    if is_shared(session.info().process, other.info().process, again) {
        return Err(OpenError(format!(
            "can't use the database `{}`: a pooler gives each transaction another connection; let the pooler give each \
             client one of its own (`pool_mode = session` of PgBouncer), or connect to the server itself",
            connector.address
        )));
    }
    Ok(())
}

async fn facts(session: &Session) -> Result<ServerFacts, Error> {
    let row = session.client().query_one(FACTS, &[]).await?;
    let limit = |name: &str| row.get::<_, Option<i32>>(name).unwrap_or(-1);
    Ok(ServerFacts {
        version: row.get("version"),
        version_text: row.get("version_text"),
        encoding: row.get("encoding"),
        fsync: row.get("fsync"),
        full_page_writes: row.get("full_page_writes"),
        synchronous_commit: row.get("synchronous_commit"),
        connections: [
            ("`max_connections` of the server", limit("connections")),
            ("the connection limit of the role", limit("connections_of_role")),
            ("the connection limit of the database", limit("connections_of_database")),
        ],
    })
}

/// Returns what is wrong with a server.
fn problem(facts: &ServerFacts) -> Option<String> {
    if facts.version < VERSION_MIN {
        return Some(format!("it is PostgreSQL {}, and the hub needs 14 or newer", facts.version_text));
    }
    if facts.encoding != "UTF8" {
        return Some(format!("its encoding is {}, and the hub needs UTF8", facts.encoding));
    }
    for (setting, value) in [("fsync", &facts.fsync), ("full_page_writes", &facts.full_page_writes)] {
        if value != "on" {
            return Some(format!(
                "its setting `{setting}` is {value}, so a crash of its machine would lose what the hub has acknowledged; set \
                 it to on"
            ));
        }
    }
    if !["on", "remote_apply"].contains(&facts.synchronous_commit.as_str()) {
        let value = &facts.synchronous_commit;
        return Some(format!(
            "its setting `synchronous_commit` stays {value}; let the hub's role set it to on"
        ));
    }
    let (limit, allowed) = facts.connections.iter().find(|(_, count)| (0..CONNECTIONS).contains(count))?;
    Some(format!("a hub needs {CONNECTIONS} connections, and {limit} leaves {allowed}; raise it"))
}

/// Whether two connections that are open at the same time have one process of the server, or one has two: a pooler is between.
fn is_shared(one: ServerProcess, other: ServerProcess, again: Option<i32>) -> bool {
    one == other || again != Some(one.pid)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn sound() -> ServerFacts {
        let on = || "on".to_owned();
        ServerFacts {
            version: 150_018,
            version_text: "15.18".into(),
            encoding: "UTF8".into(),
            fsync: on(),
            full_page_writes: on(),
            synchronous_commit: on(),
            connections: [("`max_connections` of the server", 97), ("role", -1), ("database", -1)],
        }
    }

    /// HUB-15: a server that may lose what was acknowledged is refused, and so is one that is too old or too small.
    #[test]
    fn hub_15_a_server_that_can_not_keep_a_promise_is_refused() {
        assert_eq!(problem(&sound()), None);
        let off = || "off".to_owned();
        let wrong: [(ServerFacts, &str); 6] = [
            (ServerFacts { fsync: off(), ..sound() }, "`fsync` is off"),
            (ServerFacts { full_page_writes: off(), ..sound() }, "`full_page_writes` is off"),
            (
                ServerFacts { synchronous_commit: "local".into(), ..sound() },
                "`synchronous_commit` stays local",
            ),
            (ServerFacts { version: 130_000, ..sound() }, "needs 14"),
            (ServerFacts { encoding: "LATIN1".into(), ..sound() }, "needs UTF8"),
            (ServerFacts { connections: [("`max_connections`", 6); 3], ..sound() }, "leaves 6"),
        ];
        for (facts, word) in wrong {
            let problem = problem(&facts).unwrap();
            assert!(problem.contains(word), "{problem}");
        }
    }

    /// HUB-15: whoever stands between and shares connections out by transactions is found.
    #[test]
    fn hub_15_a_pooler_of_transactions_is_found() {
        let process = |pid| ServerProcess { pid, started: SystemTime::UNIX_EPOCH };
        assert!(!is_shared(process(1), process(2), Some(1)));
        assert!(is_shared(process(1), process(1), Some(1)), "both have the same process");
        assert!(is_shared(process(1), process(2), Some(2)), "the next transaction has another one");
    }
}
