//! Accounts on either database, and a saga that moves money between them.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, millis};
use seawall_dist::StoreError;
use seawall_dist::saga::{
    CompensationMark, Saga, SagaStep, SagaStore, Sagas, SagasBuilder, StepContext, StepError, StepMark,
};
use seawall_sql::postgres::saga::PostgresSagaStore;
use seawall_sql::sqlite::saga::SqliteSagaStore;
use seawall_sql::transaction::begin;
use seawall_sql::{postgres, sqlite};
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

pub(super) const ACCOUNTS: i64 = 10;
pub(super) const BALANCE: i64 = 1_000;

/// A database with accounts. Clones share it.
#[derive(Clone)]
pub(super) struct Bank {
    pub(super) pool: Pool,
    pub(super) store: Arc<dyn SagaStore>,
    /// What a worker needs to open the same database.
    pub(super) address: String,
    /// The folder of SQLite's file goes with the last clone.
    _folder: Option<Arc<tempfile::TempDir>>,
}

#[derive(Clone)]
pub(super) enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// Runs work in a transaction on either database.
macro_rules! on {
    ($pool:expr, $connection:ident => $work:expr) => {
        match $pool {
            Pool::Postgres(pool) => {
                let mut $connection = begin(pool).await?;
                let result = $work;
                $connection.commit().await?;
                result
            }
            Pool::Sqlite(pool) => {
                let mut $connection = begin(pool).await?;
                let result = $work;
                $connection.commit().await?;
                result
            }
        }
    };
}

const SCHEMA: &str = "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)";
const EFFECTS: &str =
    "CREATE TABLE effects (step_key TEXT NOT NULL, owner TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)";
const MOVE: &str = "UPDATE accounts SET balance = balance + $2 WHERE id = $1";

impl Bank {
    pub(super) async fn postgres() -> Bank {
        Bank::postgres_on(Postgres::shared()).await
    }

    pub(super) async fn postgres_on(server: &Postgres) -> Bank {
        let database = server.database().unwrap();
        let bank = Bank::open(database.url()).await;
        bank.set_up().await.unwrap();
        bank
    }

    pub(super) async fn sqlite() -> Bank {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bank.db").display().to_string();
        let mut bank = Bank::open(&path).await;
        bank._folder = Some(Arc::new(folder));
        bank.set_up().await.unwrap();
        bank
    }

    /// Opens a database that another process has set up.
    pub(super) async fn open(address: &str) -> Bank {
        let (pool, store): (Pool, Arc<dyn SagaStore>) = if address.starts_with("postgres:") {
            let options = sqlx::postgres::PgPoolOptions::new().max_connections(8);
            let pool = options.connect(address).await.unwrap();
            (Pool::Postgres(pool.clone()), Arc::new(PostgresSagaStore::new(pool)))
        } else {
            let pool = sqlite::open(address.as_ref()).await.unwrap();
            (Pool::Sqlite(pool.clone()), Arc::new(SqliteSagaStore::new(pool)))
        };
        Bank { pool, store, address: address.to_owned(), _folder: None }
    }

    /// Runs statements without parameters.
    pub(super) async fn execute(&self, script: &'static str) {
        match &self.pool {
            Pool::Postgres(pool) => drop(sqlx::raw_sql(script).execute(pool).await.unwrap()),
            Pool::Sqlite(pool) => drop(sqlx::raw_sql(script).execute(pool).await.unwrap()),
        }
    }

    async fn set_up(&self) -> Result<(), BankError> {
        match &self.pool {
            Pool::Postgres(pool) => postgres::migrate(pool).await?,
            Pool::Sqlite(pool) => sqlite::migrate(pool).await?,
        }
        on!(&self.pool, connection => {
            sqlx::query(SCHEMA).execute(&mut *connection).await?;
            sqlx::query(EFFECTS).execute(&mut *connection).await?;
            for account in 0..ACCOUNTS {
                let insert = "INSERT INTO accounts (id, balance) VALUES ($1, $2)";
                sqlx::query(insert).bind(account).bind(BALANCE).execute(&mut *connection).await?;
            }
        });
        Ok(())
    }

    /// Adds to a balance, once per key, and never after it was undone.
    pub(super) async fn add(&self, key: &str, account: i64, amount: i64) -> Result<StepMark, BankError> {
        match &self.pool {
            Pool::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                let mark = postgres::saga::mark_step(&mut transaction, key).await?;
                if mark == StepMark::First {
                    sqlx::query(MOVE).bind(account).bind(amount).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
                Ok(mark)
            }
            Pool::Sqlite(pool) => {
                let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
                let mark = sqlite::saga::mark_step(&mut transaction, key).await?;
                if mark == StepMark::First {
                    sqlx::query(MOVE).bind(account).bind(amount).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
                Ok(mark)
            }
        }
    }

    /// Takes back what was added under the key.
    pub(super) async fn take_back(
        &self,
        key: &str,
        account: i64,
        amount: i64,
    ) -> Result<CompensationMark, BankError> {
        match &self.pool {
            Pool::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                let mark = postgres::saga::mark_compensation(&mut transaction, key).await?;
                if mark == CompensationMark::Undo {
                    sqlx::query(MOVE).bind(account).bind(-amount).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
                Ok(mark)
            }
            Pool::Sqlite(pool) => {
                let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
                let mark = sqlite::saga::mark_compensation(&mut transaction, key).await?;
                if mark == CompensationMark::Undo {
                    sqlx::query(MOVE).bind(account).bind(-amount).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
                Ok(mark)
            }
        }
    }

    /// Records that a process works at a step, with the database's clock in seconds.
    pub(super) async fn record(&self, key: &str, owner: &str) -> Result<(), BankError> {
        match &self.pool {
            Pool::Postgres(pool) => {
                let insert = "INSERT INTO effects VALUES ($1, $2, extract(epoch FROM clock_timestamp())::DOUBLE PRECISION)";
                sqlx::query(insert).bind(key).bind(owner).execute(pool).await?;
            }
            Pool::Sqlite(pool) => {
                let insert = "INSERT INTO effects VALUES ($1, $2, unixepoch('subsec'))";
                sqlx::query(insert).bind(key).bind(owner).execute(pool).await?;
            }
        }
        Ok(())
    }

    /// Every record, in the order of time.
    pub(super) async fn records(&self) -> Vec<(String, String, f64)> {
        let query = "SELECT step_key, owner, at FROM effects ORDER BY at";
        match &self.pool {
            Pool::Postgres(pool) => sqlx::query_as(query).fetch_all(pool).await.unwrap(),
            Pool::Sqlite(pool) => sqlx::query_as(query).fetch_all(pool).await.unwrap(),
        }
    }

    pub(super) async fn balances(&self) -> Vec<i64> {
        let query = "SELECT balance FROM accounts ORDER BY id";
        match &self.pool {
            Pool::Postgres(pool) => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
            Pool::Sqlite(pool) => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
        }
    }

    /// Begins a handle that knows the transfer.
    pub(super) fn sagas(&self, store: Arc<dyn SagaStore>, lease: Duration) -> SagasBuilder {
        Sagas::builder(store).register(self.transfer()).lease(lease).monitor_period(millis(200))
    }

    /// Moves money: the input is `from to amount`. With the word `refuse` after it the last step fails, and with `slow` a step
    /// hangs for a while after its effect.
    fn transfer(&self) -> Saga {
        let step = |name: &str, index: usize, sign: i64| {
            let (forward, backward) = (self.clone(), self.clone());
            SagaStep::new(name, move |context: StepContext| {
                let bank = forward.clone();
                async move {
                    let order = Order::of(&context);
                    match bank.add(&context.key, order.accounts[index], sign * order.amount).await? {
                        StepMark::Refused => Err(BankError::Refused),
                        _ => {
                            if order.slow {
                                tokio::time::sleep(SLOW).await;
                            }
                            Ok(())
                        }
                    }
                }
            })
            .compensate(move |context: StepContext| {
                let bank = backward.clone();
                async move {
                    let order = Order::of(&context);
                    bank.take_back(&context.key, order.accounts[index], sign * order.amount).await.map(|_| ())
                }
            })
            .backoff(Backoff::constant(millis(20)))
            .compensation_backoff(Backoff::constant(millis(20)))
        };
        let confirm = SagaStep::new("confirm", |context: StepContext| async move {
            let refuse = Order::of(&context).refuse;
            if refuse { Err(StepError::permanent("the transfer was refused")) } else { Ok(()) }
        })
        .compensate(|_| async { Ok::<_, StepError>(()) });
        let saga =
            Saga::builder("transfer", 1).step(step("debit", 0, -1)).step(step("credit", 1, 1)).step(confirm);
        saga.build().unwrap()
    }
}

struct Order {
    accounts: [i64; 2],
    amount: i64,
    refuse: bool,
    slow: bool,
}

/// How long a slow transfer hangs after each effect.
const SLOW: Duration = millis(100);

impl Order {
    fn of(context: &StepContext) -> Order {
        let text = String::from_utf8(context.input.to_vec()).unwrap();
        let words: Vec<&str> = text.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        let (refuse, slow) = (words.contains(&"refuse"), words.contains(&"slow"));
        Order { accounts: [number(0), number(1)], amount: number(2), refuse, slow }
    }
}

#[derive(Debug)]
pub(super) enum BankError {
    Refused,
    Store(StoreError),
    Sql(StepError),
}

impl std::fmt::Display for BankError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BankError::Refused => f.write_str("the step was compensated"),
            BankError::Store(error) => error.fmt(f),
            BankError::Sql(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BankError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BankError::Refused => None,
            BankError::Store(error) => Some(error),
            BankError::Sql(error) => Some(error),
        }
    }
}

impl From<StoreError> for BankError {
    fn from(error: StoreError) -> Self {
        BankError::Store(error)
    }
}

impl From<sqlx::Error> for BankError {
    fn from(error: sqlx::Error) -> Self {
        BankError::Sql(seawall_sql::step_error(error))
    }
}
