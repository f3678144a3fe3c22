//! Arguments that an attempt can't simply share with the next one.

use seawall::{Error, Guard, guarded};

use crate::support::{Flaky, guard};

type Failed = Error<std::io::Error>;

struct Connection {
    guard: Guard,
    peer: Flaky,
    queries: Vec<String>,
}

impl Connection {
    fn new(failures: u32) -> Self {
        Connection { guard: guard("database"), peer: Flaky::new(failures), queries: Vec::new() }
    }

    #[guarded(guard = self.guard.clone(), idempotent, attempt)]
    async fn query(&mut self, sql: &str) -> Result<usize, Failed> {
        self.queries.push(format!("{sql} {}", attempt.number()));
        self.peer.fetch().await?;
        Ok(self.queries.len())
    }

    #[guarded(guard = self.guard.clone(), idempotent)]
    fn query_now(&mut self, sql: &str) -> Result<usize, Failed> {
        self.queries.push(sql.to_owned());
        self.peer.ask()?;
        Ok(self.queries.len())
    }
}

/// ENG-16: `&mut self` is lent to one attempt after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutable_self_is_lent_to_each_attempt() {
    let asked = tokio::spawn(async {
        let mut connection = Connection::new(2);
        (connection.query("select").await, connection.queries)
    });
    let (answer, queries) = asked.await.unwrap();
    assert_eq!(answer.unwrap(), 3);
    assert_eq!(queries, ["select 1", "select 2", "select 3"]);
    assert_eq!(Connection::new(2).query_now("select").unwrap(), 3);
}

/// ENG-16: several `&mut` arguments keep their types in the body, and a closure may be the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutable_arguments_are_lent_and_keep_their_types() {
    fn add(to: &mut Vec<u32>, number: u32) {
        to.push(number);
    }
    #[guarded(guard = guard, idempotent, fallback = |_| fixed)]
    async fn both(
        guard: &Guard,
        first: &mut Vec<u32>,
        second: &mut Vec<u32>,
        fixed: u32,
    ) -> Result<u32, Failed> {
        add(first, 1);
        tokio::task::yield_now().await;
        add(second, 2);
        Err(std::io::ErrorKind::ConnectionReset.into())
    }
    let tested = tokio::spawn(async {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let answer = both(&guard("both"), &mut first, &mut second, 9).await;
        (answer, first, second)
    });
    let (answer, first, second) = tested.await.unwrap();
    assert_eq!((answer.unwrap(), first, second), (9, vec![1; 3], vec![2; 3]));
}

/// ENG-16: an argument taken by value is shared by the attempts, or cloned for each that uses it up.
#[tokio::test]
async fn owned_arguments_are_borrowed_or_cloned() {
    #[guarded(guard = guard, idempotent)]
    async fn shared(guard: &Guard, name: String, peer: &Flaky) -> Result<usize, Failed> {
        peer.fetch().await?;
        Ok(name.len())
    }
    #[guarded(guard = guard, idempotent, clone(items), fallback = kept)]
    async fn used_up(guard: &Guard, mut items: Vec<u32>, peer: &Flaky) -> Result<Vec<u32>, Failed> {
        items.push(peer.attempts());
        peer.fetch().await?;
        Ok(items)
    }
    fn kept(_: &Guard, items: Vec<u32>, _: &Flaky, _: &Failed) -> Vec<u32> {
        items
    }
    let guard = guard("owned");
    assert_eq!(shared(&guard, "seven".into(), &Flaky::new(2)).await.unwrap(), 5);
    assert_eq!(used_up(&guard, vec![7], &Flaky::new(2)).await.unwrap(), [7, 2]);
    assert_eq!(used_up(&guard, vec![7], &Flaky::new(9)).await.unwrap(), [7]);
}
