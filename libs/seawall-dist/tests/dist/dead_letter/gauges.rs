//! What the gauge of dead letters shows.

use std::collections::BTreeMap;

use metrics::with_local_recorder;
use seawall_testkit::poll_once;

use crate::observe::numbers;

/// OBS-2: a group that is gone shows zero, and not the number that it last had; clones of the handle know of each other.
#[tokio::test]
async fn obs_2_the_gauge_of_a_group_that_is_gone_is_zero() {
    let (letters, numbers) = (super::letters(2).await, numbers());
    let record = || {
        let handle = letters.clone();
        let recorded = with_local_recorder(&numbers, || poll_once(Box::pin(handle.record_gauges()).as_mut()));
        assert!(recorded.is_ready(), "a store in memory answers at once");
        numbers.all()
    };
    let waiting = "seawall.dead_letters{kind=amqp,place=orders,reason=attempts,status=waiting}";
    let parked = "seawall.dead_letters{kind=amqp,place=orders,reason=attempts,status=parked}";
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 2.0)]));
    letters.park("000").await.unwrap();
    letters.delete("001").await.unwrap();
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 0.0), (parked.to_owned(), 1.0)]));
    letters.restore("001").await.unwrap();
    letters.delete("000").await.unwrap();
    assert_eq!(record(), BTreeMap::from([(waiting.to_owned(), 1.0), (parked.to_owned(), 0.0)]));
}
