//! Sagas on the store in memory.

mod broken;
mod drops;
mod monitor;
mod outage;
mod panic;
mod replay;
mod retry;
mod run;
mod scripted;
mod stranger;
mod telemetry;
mod unknown;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall::{Backoff, millis};
use seawall_dist::saga::{
    MemorySagaStore, Saga, SagaBuilder, SagaStep, SagaStore, Sagas, SagasBuilder, StepContext, StepError,
};

/// CRD-5: the store in memory keeps the contract of every store of sagas.
#[tokio::test]
async fn crd_5_memory_is_a_saga_store() {
    seawall_testkit::conformance::saga(Arc::new(MemorySagaStore::new())).await;
}

/// What the steps of a test did, in order: `debit`, `undo debit`, …
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<String>>>);

impl Record {
    fn add(&self, what: String) -> usize {
        let mut done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        done.push(what);
        done.len()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|done| *done == what).count()
    }
}

/// A step that records itself and then does what `action` and `compensation` say of the attempt.
fn step(
    name: &str,
    record: &Record,
    action: impl Fn(u32) -> Result<(), StepError> + Send + Sync + 'static,
    compensation: impl Fn(u32) -> Result<(), StepError> + Send + Sync + 'static,
) -> SagaStep {
    let (forward, backward) = (record.clone(), record.clone());
    let (action, compensation) = (Arc::new(action), Arc::new(compensation));
    SagaStep::new(name, move |context: StepContext| {
        let (record, action) = (forward.clone(), action.clone());
        async move {
            record.add(context.step.to_string());
            tokio::task::yield_now().await;
            action(context.attempt).map(|()| format!("{} by {}", context.step, context.key))
        }
    })
    .compensate(move |context: StepContext| {
        let (record, compensation) = (backward.clone(), compensation.clone());
        async move {
            record.add(format!("undo {}", context.step));
            tokio::task::yield_now().await;
            compensation(context.attempt)
        }
    })
    .backoff(Backoff::constant(millis(10)))
    .compensation_backoff(Backoff::constant(millis(10)))
}

fn fine(_: u32) -> Result<(), StepError> {
    Ok(())
}

fn refused(_: u32) -> Result<(), StepError> {
    Err(StepError::permanent("no such account"))
}

fn transfer(record: &Record) -> SagaBuilder {
    Saga::builder("transfer", 1)
        .step(step("debit", record, fine, fine))
        .step(step("credit", record, fine, fine))
}

fn sagas<S: SagaStore>(store: &Arc<S>, saga: SagaBuilder) -> SagasBuilder {
    let store: Arc<dyn SagaStore> = store.clone();
    Sagas::builder(store).register(saga.build().unwrap()).lease(LEASE).monitor_period(LEASE)
}

const LEASE: Duration = Duration::from_secs(1);
