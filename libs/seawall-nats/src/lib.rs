//! NATS JetStream with acknowledged publishing, durable consumers, delayed redelivery and dead letters.
