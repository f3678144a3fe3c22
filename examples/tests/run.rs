//! Runs every example and looks at what it says.

use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// An example takes a few seconds. One that takes this long waits for something that does not come.
const LIMIT: Duration = Duration::from_secs(120);

fn says(binary: &str, expected: &[&str]) {
    let mut command = Command::new(binary);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let example = command.spawn().expect("the example was built");
    let id = example.id().to_string();
    let (ended, is_ended) = mpsc::channel::<()>();
    let limit = thread::spawn(move || {
        if is_ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let killed = Command::new("kill").args(["-KILL", &id]).status();
            assert!(killed.is_ok_and(|status| status.success()), "an example that hangs can be killed");
        }
    });
    let output = example.wait_with_output().expect("the example was started");
    drop(ended);
    limit.join().expect("the time limit holds");
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{binary} failed:\n{text}{complaint}");
    for line in expected {
        assert!(text.contains(line), "{line:?} is missing in what {binary} says:\n{text}");
    }
}

#[test]
fn http_call() {
    says(
        env!("CARGO_BIN_EXE_http_call"),
        &[
            "after two failures that nobody saw: 200",
            "an answer that is no is still an answer: 404",
            "nobody there: inventory: gave up after 3 attempts: i/o fault (connection refused) (ran: No)",
            "guard `inventory`, from outside in",
        ],
    );
}

#[test]
fn reqwest_client() {
    says(
        env!("CARGO_BIN_EXE_reqwest_client"),
        &[
            "a closed connection, then a 503: 200",
            "as an error of reqwest: 200",
            "not declared safe to repeat: inventory: failed, and repeating it is not declared safe: i/o fault",
            "nobody there, and so repeated: inventory: gave up after 3 attempts: i/o fault (connection refused) (ran: No)",
            "no such article: None",
        ],
    );
}

#[test]
fn hyper_client() {
    says(
        env!("CARGO_BIN_EXE_hyper_client"),
        &[
            "a closed connection, then a 502: 200 OK",
            "as a layer: 200 OK",
            "nobody there, and so repeated: inventory: gave up after 3 attempts: i/o fault (connection refused) (ran: No)",
        ],
    );
}

#[test]
fn fallback() {
    says(
        env!("CARGO_BIN_EXE_fallback"),
        &[
            "fresh: 1.08 (fallback: false)",
            "stale: 1.08 (fallback: true)",
            "default: 1, kept for later: [\"rates: gave up after 2 attempts",
            "event: rates: attempt 2 follows in",
            "event: rates: a fallback answered (last_good): i/o fault (connection reset)",
        ],
    );
}

#[test]
fn failover() {
    says(env!("CARGO_BIN_EXE_failover"), &["the primary was asked 2 times", "back at the primary"]);
}

#[test]
fn query_with_fallback() {
    says(
        env!("CARGO_BIN_EXE_query_with_fallback"),
        &[
            "3 prices from the primary",
            "3 prices from the secondary",
            "back at the primary",
            "both down: true",
        ],
    );
}

#[test]
fn after_commit() {
    says(
        env!("CARGO_BIN_EXE_after_commit"),
        &[
            "order 1: confirmation sent\norder 1: a gift is packed\n",
            "order 2: no gift left\norder 2: confirmation sent\norder 3: no gift left\norder 3: out of stock\n",
            "orders [1, 2]",
        ],
    );
}

#[test]
fn hedged_read() {
    says(env!("CARGO_BIN_EXE_hedged_read"), &["answered by replica 2; second attempts: 1, of which won: 1"]);
}

#[test]
fn tower_client() {
    says(env!("CARGO_BIN_EXE_tower_client"), &["after two failures that nobody saw: 200"]);
}

#[test]
fn cache_loader() {
    says(
        env!("CARGO_BIN_EXE_cache_loader"),
        &[
            "100 callers, 1 read: Ok(Some(\"paid\"))",
            "an order that does not exist: 1 more read",
            "after a rollback (Err(\"conflict\")): Some(\"paid\")",
            "after a commit: Some(\"shipped\")",
            "after an event: Some(\"delivered\")",
            "asked for version 4: Some(\"returned\")",
        ],
    );
}

#[test]
fn batch_get() {
    says(
        env!("CARGO_BIN_EXE_batch_get"),
        &[
            "three callers, 1 question: [\"article 1\", \"article 2\", \"article 3\"]",
            "failed after 1 attempt: i/o fault (connection reset)",
            "rejected by the breaker",
            "questions that reached the peer: 3",
        ],
    );
}

#[test]
fn dispatcher() {
    says(
        env!("CARGO_BIN_EXE_dispatcher"),
        &[
            "5 of 5",
            "o-1: processed, 10",
            "o-13: failed, no such order",
            "o-66: panicked: the order has no lines",
            "o-3: processed, 30",
            "the first hundred squares come to 338350",
            "in order: ada 1, ada 2, ada 3",
        ],
    );
}

#[test]
fn group() {
    says(
        env!("CARGO_BIN_EXE_group"),
        &[
            "all well: true",
            "told: item 3 panicked, item 3 has no price (place and backtrace known: true)",
            "first failure: task `item 2` failed: item 2 is sold out",
            "slow: cancelled",
            "broken: failed, no connection",
        ],
    );
}

#[test]
fn with_lock() {
    says(
        env!("CARGO_BIN_EXE_with_lock"),
        &[
            "under the lock: 7",
            "outer and inner have the lock of ada: lock:transaction:user:ada",
            "ada has 70, the shop 30",
            "somebody else: true",
            "without Redis: `lock:transaction:user:ada` was lost and the work cancelled: it could not be renewed in time",
            "the late write: ada: a newer holder has written",
            "ada has 75",
        ],
    );
}

#[test]
fn outbox() {
    says(
        env!("CARGO_BIN_EXE_outbox"),
        &[
            "waiting: 2",
            "published by: Outbox",
            "ended in order: true",
            "the broker has: OrderCreated order-1, OrderCreated order-3, OrderViewed order-1",
        ],
    );
}

#[test]
fn file_storage() {
    says(
        env!("CARGO_BIN_EXE_file_storage"),
        &[
            "stored 27 bytes of q3.csv by Store(Side(0))",
            "downloaded Some(\"text/csv\")",
            "refused: uploading a file failed: file type not allowed: `exe`",
            "refused: uploading a file failed: file name has a separator or a control character",
            "refused: uploading a file failed: file size must be positive",
            "refused: uploading a file failed: file size exceeds limit: 10485760 bytes",
            "while the server is down: late.csv by Spool",
            "read from the spool: 27 bytes",
            "sent later: true",
            "deleted: true",
            "then: downloading a file failed: there is no such file",
        ],
    );
}

#[test]
fn processed_events() {
    says(
        env!("CARGO_BIN_EXE_processed_events"),
        &[
            "stock: crashed before the commit\nstock: processed\nstock: already processed\nleft in stock: 9",
            "mail: sent\nmail: already processed",
            "processed:0192f8a0-1111-7abc-8def-0123456789ab = 1",
        ],
    );
}

#[test]
fn cache_write_through() {
    says(
        env!("CARGO_BIN_EXE_cache_write_through"),
        &[
            "two lookups, 1 read: paid",
            "rolled back, still 1 read: paid",
            "committed, 2 reads: shipped",
            "the other process, still 2 reads: shipped",
            "Redis is away, 3 reads: delivered",
        ],
    );
}

#[test]
fn cache_invalidation_events() {
    says(
        env!("CARGO_BIN_EXE_cache_invalidation_events"),
        &[
            "both processes: 10 and 10",
            "after product.viewed: 10 and 10",
            "after product.price_changed: 12 and 12",
            "an event that can't be read is an error, for the broker to deliver again: true",
        ],
    );
}

#[test]
fn saga_transfer() {
    says(
        env!("CARGO_BIN_EXE_saga_transfer"),
        &[
            "to an open account: completed true, balances [70, 130, 100]",
            "to a closed account: step `credit` failed: account 3 is closed or has not enough; balances [70, 130, 100]",
            "the sum is 300",
        ],
    );
}

#[test]
fn payment_adapter() {
    says(
        env!("CARGO_BIN_EXE_payment_adapter"),
        &[
            "after a 503 and a closed connection: Paid",
            "refused at once: the provider refused the payment with status 422",
            "nobody there: Pending",
            "the circuit: Some(Open",
        ],
    );
}

#[test]
fn cache_gateway() {
    says(
        env!("CARGO_BIN_EXE_cache_gateway"),
        &[
            "empty: None\nstored: Some(User { name: \"Ada\" })\ndeleted: None\nunreadable: None\nwithout a key: true",
            "Redis hangs: None, the write is skipped: true",
            "Redis is away: None, the write is skipped: true",
        ],
    );
}

#[test]
fn kafka_events() {
    says(
        env!("CARGO_BIN_EXE_kafka_events"),
        &[
            "published by: Broker\npublished by: Broker",
            "kafka:orders:e-2:billing: attempts after 3 attempts: the database of invoices is away",
            "kafka:orders:e-3:billing: invalid after 1 attempts: the order number is missing",
            "Replayed { generation: 1, repeated: false }\ninvoices: 2, attempts: 5",
            "Kafka is away, published by: Outbox",
        ],
    );
}

#[test]
fn grpc_client() {
    says(
        env!("CARGO_BIN_EXE_grpc_client"),
        &[
            "ignored: loadBalancingPolicy: is a matter of the channel",
            "after two failures that nobody saw: b\"seven\"",
            "an answer that is no: NotFound after 1 attempt",
            "the server asked for no retry: Unavailable after 1 attempt",
            "the second of two reads was faster: b\"seven\" of 2 attempts",
            // Three of ten tokens are gone by then, and three more failures leave less than half: no retries from then on.
            "attempts of seven calls to a server in trouble: [3, 1, 1, 1, 1, 0, 0]",
        ],
    );
}
