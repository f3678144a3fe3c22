//! A store in memory whose calls can be made to hang or to panic, one by one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, MemorySagaStore, SagaFilter, SagaRecord, SagaRow,
    SagaState, SagaStore, SagaWrite, WriteOutcome,
};

/// A method of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    Create,
    Get,
    List,
    Claim,
    ClaimDue,
    Renew,
    Release,
    Write,
    Count,
    Unclaimed,
    CleanUp,
}

type Script = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct ScriptedStore {
    inner: MemorySagaStore,
    scripts: Mutex<Vec<(Call, Script)>>,
    /// Calls that hang until they are dropped.
    hanging: Mutex<Vec<Call>>,
}

impl ScriptedStore {
    /// Does this at the beginning of the next call of a method.
    pub(super) fn next(&self, call: Call, script: impl FnOnce() + Send + 'static) {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).push((call, Box::new(script)));
    }

    /// Lets these methods hang from now on, and no others.
    pub(super) fn hang(&self, calls: &[Call]) {
        *self.hanging.lock().unwrap_or_else(PoisonError::into_inner) = calls.to_vec();
    }

    async fn call<T>(&self, call: Call, operation: impl Future<Output = T>) -> T {
        let script = {
            let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
            let index = scripts.iter().position(|(of, _)| *of == call);
            index.map(|index| scripts.remove(index).1)
        };
        if let Some(script) = script {
            script();
        }
        if self.hanging.lock().unwrap_or_else(PoisonError::into_inner).contains(&call) {
            std::future::pending::<()>().await;
        }
        operation.await
    }
}

impl SagaStore for ScriptedStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        Box::pin(self.call(Call::Create, self.inner.create(row)))
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        Box::pin(self.call(Call::Get, self.inner.get(id)))
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(self.call(Call::List, self.inner.list(filter)))
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        Box::pin(self.call(Call::Claim, self.inner.claim(id, owner, lease)))
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(self.call(Call::ClaimDue, self.inner.claim_due(due)))
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(self.call(Call::Renew, self.inner.renew(id, fence, lease)))
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        Box::pin(self.call(Call::Release, self.inner.release(id, fence)))
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(self.call(Call::Write, self.inner.write(write)))
    }

    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
        Box::pin(self.call(Call::Count, self.inner.count()))
    }

    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>> {
        Box::pin(self.call(Call::Unclaimed, self.inner.unclaimed(age)))
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(self.call(Call::CleanUp, self.inner.clean_up(age, limit)))
    }
}
