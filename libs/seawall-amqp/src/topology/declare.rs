//! Declares the queues.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, ExchangeKind};

use super::config::{DEAD_LETTER_EXCHANGE, QueueTopology, retry_queue};
use super::error::TopologyError;
use crate::connection::{AmqpConnection, OpenConnection, Purpose};

impl QueueTopology {
    /// Declares everything that is absent. What is there as it should be stays as it is.
    ///
    /// The dead letter queue comes first and the bindings last, so that no message can arrive before it has a place to end.
    pub async fn declare(&self, connection: &AmqpConnection) -> Result<(), TopologyError> {
        let open = connection.open(Purpose::Consume).await.map_err(TopologyError::Server)?;
        let channel = open.channel().await.map_err(TopologyError::Server)?;
        let declarer = Declarer { open: &open, channel: &channel };
        let (queue, dead) = (self.queue(), self.dead_letter_queue());
        declarer.exchange(DEAD_LETTER_EXCHANGE, ExchangeKind::Direct).await?;
        declarer.queue(dead, self.dead_letter_arguments()).await?;
        declarer.bind(dead, DEAD_LETTER_EXCHANGE, dead).await?;
        declarer.queue(queue, self.queue_arguments()).await?;
        for delay in &self.parts.retry_delays {
            declarer.queue(&retry_queue(queue, *delay), self.retry_arguments(*delay)).await?;
        }
        for binding in &self.parts.bindings {
            declarer.exchange(&binding.exchange, binding.kind.clone()).await?;
            declarer.bind(queue, &binding.exchange, &binding.routing_key).await?;
        }
        // A channel that is dropped is closed too; this one says so before the next one is opened.
        let _ = open.within("closing a channel", channel.close(200, "declared".into())).await;
        Ok(())
    }
}

struct Declarer<'a> {
    open: &'a OpenConnection,
    channel: &'a Channel,
}

impl Declarer<'_> {
    async fn exchange(&self, name: &str, kind: ExchangeKind) -> Result<(), TopologyError> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declare = self.channel.exchange_declare(name.into(), kind, options, FieldTable::default());
        let result = self.open.within("declaring an exchange", declare).await;
        result.map_err(|error| TopologyError::of(format!("exchange `{name}`"), error))
    }

    async fn queue(&self, name: &str, arguments: FieldTable) -> Result<(), TopologyError> {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let declare = self.channel.queue_declare(name.into(), options, arguments);
        let result = self.open.within("declaring a queue", declare).await;
        result.map(drop).map_err(|error| TopologyError::of(format!("queue `{name}`"), error))
    }

    async fn bind(&self, queue: &str, exchange: &str, routing_key: &str) -> Result<(), TopologyError> {
        let options = QueueBindOptions::default();
        let bind = self.channel.queue_bind(
            queue.into(),
            exchange.into(),
            routing_key.into(),
            options,
            FieldTable::default(),
        );
        self.open.within("binding a queue", bind).await.map_err(TopologyError::Server)
    }
}
