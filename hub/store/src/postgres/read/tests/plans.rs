//! A session whose statements tell how they were executed.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::SystemTime;

use seawall_hub_core::sync::Lock;
use seawall_testkit::servers::{Database, Postgres};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Config, NoTls};

use crate::postgres::engine::session::{ServerProcess, Session, SessionInfo, Timeline};
use crate::postgres::read::READER_SETTINGS;

/// Has each statement send its plan with the rows that it has read.
const EXPLAIN: &str = "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
    SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET auto_explain.log_level = notice;
    SET client_min_messages = notice; SET jit = off";

/// What the statements of a session have done.
pub(super) struct Explained(Arc<Lock<Vec<Value>>>);

impl Explained {
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns the number of rows that were read from tables and indexes.
    pub(super) fn rows_read(&self) -> u64 {
        self.0.lock().iter().map(|plan| rows_read(&plan["Plan"])).sum()
    }

    /// Returns the plans as a text, with what each step has read.
    pub(super) fn plans(&self) -> String {
        let plans = self.0.lock().clone();
        let text = |plan: &Value| {
            let query = plan["Query Text"].as_str().unwrap_or_default();
            format!("{query}\n{}", lines(&plan["Plan"], 1).concat())
        };
        plans.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the names of the tables that were read from their beginning to their end.
    pub(super) fn tables_read_whole(&self) -> Vec<String> {
        self.0.lock().iter().flat_map(|plan| tables_read_whole(&plan["Plan"])).collect()
    }
}

fn parts(node: &Value) -> impl Iterator<Item = &Value> {
    node["Plans"].as_array().into_iter().flatten()
}

fn lines(node: &Value, depth: usize) -> Vec<String> {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    let (kind, table, index) = (text("Node Type"), text("Relation Name"), text("Index Name"));
    let [rows, loops] = ["Actual Rows", "Actual Loops"].map(|count| node[count].as_f64().unwrap_or(0.0));
    let removed = node["Rows Removed by Filter"].as_f64().unwrap_or(0.0);
    let here = format!(
        "{:1$}{kind} {table} {index}: {rows} rows, {removed} removed, {loops} times\n",
        "",
        2 * depth
    );
    [here].into_iter().chain(parts(node).flat_map(|part| lines(part, depth + 1))).collect()
}

fn rows_read(node: &Value) -> u64 {
    let is_scan = node["Relation Name"].is_string() || node["Node Type"] == "Bitmap Index Scan";
    let counts = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"];
    let each: f64 = counts.iter().map(|count| node[count].as_f64().unwrap_or(0.0)).sum();
    let here = if is_scan { each * node["Actual Loops"].as_f64().unwrap_or(0.0) } else { 0.0 };
    parts(node).map(rows_read).sum::<u64>() + here as u64
}

fn tables_read_whole(node: &Value) -> Vec<String> {
    let here = (node["Node Type"] == "Seq Scan").then(|| node["Relation Name"].as_str().unwrap_or_default());
    here.map(ToOwned::to_owned).into_iter().chain(parts(node).flat_map(tables_read_whole)).collect()
}

/// Returns the database of `fill.sql`, which all tests read and none changes.
async fn database() -> &'static Database {
    static FILLED: OnceCell<Database> = OnceCell::const_new();
    FILLED
        .get_or_init(async || {
            let database = Postgres::shared().database().unwrap();
            let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
            let fill =
                client.batch_execute(concat!(include_str!("../../step_1.sql"), include_str!("fill.sql")));
            tokio::select! {
                filled = fill => filled.unwrap(),
                ended = connection => panic!("the connection has ended: {ended:?}"),
            }
            database
        })
        .await
}

/// Returns a session that reads the filled database.
pub(super) async fn session() -> (Session, Explained) {
    let config: Config = database().await.url().parse().unwrap();
    let (client, mut connection) = config.connect(NoTls).await.unwrap();
    let plans: Arc<Lock<Vec<Value>>> = Arc::default();
    let told = plans.clone();
    let mut socket = JoinSet::new();
    socket.spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notice(notice) = message
                && let Some(plan) = notice.message().find('{')
            {
                told.lock().push(serde_json::from_str(&notice.message()[plan..]).unwrap());
            }
        }
    });
    client.batch_execute(READER_SETTINGS).await.unwrap();
    client.batch_execute(EXPLAIN).await.unwrap();
    let process = ServerProcess { pid: 0, started: SystemTime::UNIX_EPOCH };
    let info = SessionInfo { process, timeline: Timeline { system: 0, number: 0 } };
    (Session::new(client, info, socket), Explained(plans))
}
