//! ENG-1: what the errors of a real server, and of its absence, mean.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use seawall::fault::Ran;
use seawall_kafka::fault_of;
use seawall_testkit::servers::{Kafka, free_port};

fn ask(config: &ClientConfig, topic: Option<&str>) -> KafkaError {
    let consumer: BaseConsumer = config.create().unwrap();
    match consumer.fetch_metadata(topic, Duration::from_secs(2)) {
        Err(error) => error,
        Ok(metadata) => {
            let code = metadata.topics()[0].error().expect("an error of the topic");
            KafkaError::MetadataFetch(code.into())
        }
    }
}

/// ENG-1: nobody listens, nothing is there, nothing can be there.
#[test]
fn eng_1_errors_of_a_real_server_are_judged() {
    let mut nobody = ClientConfig::new();
    nobody.set("bootstrap.servers", format!("127.0.0.1:{}", free_port().unwrap()));
    let fault = fault_of(&ask(&nobody, None));
    assert!(fault.is_transient(), "{fault:?}");

    let kafka = Kafka::shared();
    let mut absent = ClientConfig::new();
    absent.set("bootstrap.servers", kafka.bootstrap_servers()).set("allow.auto.create.topics", "false");
    for topic in ["no-such-topic", "no such name"] {
        let fault = fault_of(&ask(&absent, Some(topic)));
        assert_eq!((fault.is_transient(), fault.did_run()), (false, Ran::No), "{topic}: {fault:?}");
    }
}
