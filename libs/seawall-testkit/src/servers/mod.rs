//! Real servers for tests: Redis, PostgreSQL, RabbitMQ, Kafka, NATS, an S3 server, a blob server, a proxy that breaks the network
//! between them and the test, and workers that a test may kill.
//!
//! Each server runs on a free loopback port with its data in a temporary folder, and never touches an instance that the
//! machine already runs. A test can [stop](ServerControl::stop), [kill](ServerControl::kill),
//! [pause](ServerControl::pause) and [start](ServerControl::start) a server again. The server and its folder are gone when
//! the value is dropped, and also when the test process is killed.
//!
//! ```no_run
//! # fn main() -> Result<(), seawall_testkit::servers::ServerError> {
//! use seawall_testkit::servers::Redis;
//! let redis = Redis::start()?;
//! println!("{}", redis.url());
//! redis.control().pause()?; // commands hang from now on
//! redis.control().resume()?;
//! # Ok(()) }
//! ```
//!
//! # How to add a server
//! Write one file with a type that holds a [`ServerControl`]: find the program with [`find_program`], say in a
//! [`Launch`] how it starts and how it stops, and say how a test sees that it is ready.

mod azurite;
mod control;
mod fetched;
mod folder;
mod http_answer;
mod kafka;
mod nats;
mod postgres;
mod program;
mod proxy;
mod rabbitmq;
mod redis;
mod seaweed;
mod small_disk;
mod worker;

pub use azurite::Azurite;
pub use control::{Launch, ServerControl};
pub use kafka::{Kafka, KafkaBuilder};
pub use nats::{Nats, NatsBuilder};
pub use postgres::{Database, Postgres, PostgresBuilder, Replication};
pub use program::{ServerError, find_program, free_port};
pub use proxy::{FaultProxy, NetworkFault};
pub use rabbitmq::RabbitMq;
pub use redis::{Redis, RedisBuilder};
pub use seaweed::SeaweedS3;
pub use worker::{WorkerProcess, worker_settings};
