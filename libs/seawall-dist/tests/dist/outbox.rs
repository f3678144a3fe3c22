mod away;
mod broken;
mod fallback;
mod faulty;
mod hanging;
#[cfg(feature = "tracing")]
mod lines;
mod relay;

use std::sync::Arc;

use seawall_dist::Message;
use seawall_dist::outbox::{MemoryOutbox, MemoryTransaction, OutboxStore};
use seawall_testkit::conformance::{OutboxUnderTest, TestFuture, TestTransaction, outbox};

struct InMemory(MemoryOutbox);

impl InMemory {
    fn open(outbox: &MemoryOutbox) -> TestFuture<'_, Box<dyn TestTransaction>> {
        Box::pin(async { Box::new(Open(outbox.begin())) as Box<dyn TestTransaction> })
    }
}

impl OutboxUnderTest for InMemory {
    fn store(&self) -> Arc<dyn OutboxStore> {
        Arc::new(self.0.clone())
    }

    fn begin(&self) -> TestFuture<'_, Box<dyn TestTransaction>> {
        Self::open(&self.0)
    }
}

struct Open(MemoryTransaction);

impl TestTransaction for Open {
    fn enqueue<'a>(&'a mut self, message: &'a Message) -> TestFuture<'a, ()> {
        Box::pin(async { self.0.enqueue(message) })
    }

    fn commit(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { self.0.commit() })
    }

    fn rollback(self: Box<Self>) -> TestFuture<'static, ()> {
        Box::pin(async { drop(self.0) })
    }
}

/// CRD-3: the outbox in memory holds what every outbox has to hold.
#[tokio::test(start_paused = true)]
async fn crd_3_the_outbox_in_memory_conforms() {
    outbox(&InMemory(MemoryOutbox::new())).await;
}
