use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
use seawall_testkit::servers::{self, FaultProxy, NetworkFault};
use tempfile::TempDir;
use tokio::time::sleep;

use super::super::address::Address;
use super::super::connect::Connector;
use super::super::link::Link;
use super::super::node::{HubNode, SLOTS, beat, join};
use super::super::telemetry::ConnectTelemetry;
use super::super::tls;
use super::*;

/// A writer behind a network that a test breaks, and a connection beside it.
struct Place {
    _folder: TempDir,
    /// What the first connection goes through. When it is gone, the next one goes to the server itself.
    proxy: Option<FaultProxy>,
    node: Arc<HubNode>,
    beside: Session,
    transactor: Transactor,
}

fn connector(url: &str) -> Connector {
    let address = Address::parse(url, "seawall hub test").unwrap();
    let telemetry = Arc::new(ConnectTelemetry::new(Clock::system()));
    Connector { tls: tls::connector(&address.tls).unwrap(), address, settings: "", telemetry }
}

async fn place() -> Place {
    let (folder, database) = (TempDir::new().unwrap(), servers::Postgres::shared().database().unwrap());
    let server = servers::Postgres::shared().address();
    let proxy = FaultProxy::start(server).unwrap();
    let both = database.url().replace(&server.to_string(), &format!("{},{server}", proxy.address()));
    let beside = connector(database.url()).connect().await.unwrap();
    let id = join(&beside, "test", folder.path()).await.unwrap();
    beside.run_text("CREATE TABLE counted (n integer)").await.unwrap();
    let node = Arc::new(HubNode::new(id, beside.info().timeline, Clock::system()));
    let link = Link::new(connector(&both), node.clone());
    let transactor = Transactor::new(link, node.clone(), SLOTS[0]);
    Place { _folder: folder, proxy: Some(proxy), node, beside, transactor }
}

impl Place {
    /// Inserts a row, with this fault from just before COMMIT until the connection is closed. Returns the result, how often the
    /// work was done, and how many rows there are.
    async fn insert_with(&mut self, fault: NetworkFault) -> (Result<(), TransactError>, u32, i64) {
        let (times, proxy) = (Cell::new(0), Cell::new(self.proxy.take()));
        let since = Clock::system().precise();
        let inserted = self.transactor.run(since, async |session, _| {
            session.run("INSERT INTO counted VALUES (1)", &[]).await?;
            times.set(times.get() + 1);
            if let Some(broken) = proxy.take() {
                broken.set(fault);
                proxy.set(Some(broken));
            }
            Ok(())
        });
        let healed = async {
            sleep(Duration::from_millis(300)).await;
            // What it holds back never arrives.
            drop(proxy.take());
            assert!(beat(&self.beside, &self.node).await.unwrap());
        };
        let (inserted, ()) = tokio::join!(inserted, healed);
        let row = self.beside.find("SELECT count(*) FROM counted", &[]).await.unwrap().unwrap();
        (inserted, times.get(), row.get(0))
    }
}

/// HUB-15: a transaction whose COMMIT was carried out and not answered is not run again.
#[tokio::test]
async fn hub_15_what_was_committed_without_an_answer_is_not_done_again() {
    let mut place = place().await;
    let (inserted, times, rows) = place.insert_with(NetworkFault::LostResponses).await;
    assert!(inserted.is_ok(), "{inserted:?}");
    assert_eq!((times, rows), (1, 1));
}

/// HUB-15: a transaction whose COMMIT has not arrived is run again.
#[tokio::test]
async fn hub_15_what_was_not_committed_is_done_again() {
    let mut place = place().await;
    let (inserted, times, rows) = place.insert_with(NetworkFault::Partition).await;
    assert!(inserted.is_ok(), "{inserted:?}");
    assert_eq!((times, rows), (2, 1));
}

/// HUB-15: a writer that does not look at its row does the same twice, and the test above finds that.
#[tokio::test]
async fn hub_15_a_writer_that_ignores_its_row_is_found() {
    let mut place = place().await;
    place.transactor.forgets = true;
    let (_, times, rows) = place.insert_with(NetworkFault::LostResponses).await;
    assert_eq!((times, rows), (2, 2));
}
