//! A cache in front of a database: one load for all who ask, absence remembered, and four ways to get rid of old values.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use seawall::task::cache::{MemoryRemoteCache, RawCodec};
use seawall::task::{Cache, VersionedValue};
use seawall::{millis, secs};

/// Stands for a table of orders. Counts how often it is read.
#[derive(Clone, Default)]
struct Orders {
    rows: Arc<Mutex<HashMap<u32, VersionedValue<String>>>>,
    reads: Arc<Mutex<u32>>,
}

impl Orders {
    async fn find(self, id: u32) -> io::Result<Option<VersionedValue<String>>> {
        *self.reads.lock().expect("nobody panics") += 1;
        tokio::time::sleep(millis(5)).await;
        Ok(self.rows.lock().expect("nobody panics").get(&id).cloned())
    }

    async fn status(self, id: u32) -> io::Result<Option<String>> {
        Ok(self.find(id).await?.map(|row| row.value))
    }

    fn write(&self, id: u32, status: &str) {
        let mut rows = self.rows.lock().expect("nobody panics");
        let version = rows.get(&id).map_or(1, |row| row.version + 1);
        rows.insert(id, VersionedValue { value: status.into(), version });
    }

    fn reads(&self) -> u32 {
        *self.reads.lock().expect("nobody panics")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = Orders::default();
    orders.write(7, "paid");
    let remote = MemoryRemoteCache::new(1_000); // Stands for the Redis that processes share.
    let cache = Cache::builder("orders")
        .ttl(secs(60))
        .not_found_ttl(secs(30))
        .remote(remote.clone(), RawCodec)
        .build()?;
    let load = async |id: u32| {
        let orders = orders.clone();
        cache.load(&format!("order:{id}"), move || orders.status(id)).await
    };

    // A hundred at once are one read; so is a hundred times nothing.
    let answers = futures(100, || load(7)).await;
    println!(
        "{} callers, {} read: {:?}",
        answers.len(),
        orders.reads(),
        answers[0].as_ref().map(Option::as_deref)
    );
    futures(100, || load(8)).await;
    println!("an order that does not exist: {} more read", orders.reads() - 1);

    // 1. By age: nothing to do.
    // 2. Deleted after the commit, and not after a rollback.
    let rolled_back = cache.after_commit(["order:7"], async { Err::<(), _>("conflict") }).await;
    println!("after a rollback ({rolled_back:?}): {:?}", load(7).await?);
    let commit = async {
        orders.write(7, "shipped");
        Ok::<_, io::Error>(())
    };
    cache.after_commit(["order:7"], commit).await?;
    println!("after a commit: {:?}", load(7).await?);

    // 3. By event: a consumer in another process deletes, and this one hears of it.
    let elsewhere = Cache::<String>::builder("orders").remote(remote, RawCodec).build()?;
    let consumer = async {
        tokio::time::sleep(millis(10)).await;
        orders.write(7, "delivered");
        elsewhere.invalidate("order:7").await; // On the event `order.delivered`.
        tokio::time::sleep(millis(10)).await;
    };
    tokio::select! { () = cache.listen() => {}, () = consumer => {} }
    println!("after an event: {:?}", load(7).await?);

    // 4. By version: the caller knows that there is a version 4, so an older one is a miss.
    orders.write(7, "returned");
    let known = orders.clone();
    let newest = cache.load_version("order:7", 4, move || known.find(7)).await?;
    println!("asked for version 4: {newest:?}");
    println!("{:?}", cache.stats());
    Ok(())
}

/// So many at once.
async fn futures<F: Future>(count: usize, mut make: impl FnMut() -> F) -> Vec<F::Output> {
    let mut running: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
    let mut done: Vec<Option<F::Output>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(cx)
            {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
