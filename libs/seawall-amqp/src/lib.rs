//! RabbitMQ with confirmed publishing, quorum queues, delayed retries and a dead letter queue.
