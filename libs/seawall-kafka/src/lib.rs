//! Kafka with an idempotent producer, retry topics, a dead letter topic and offsets committed after the work.
