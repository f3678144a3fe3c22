use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::idempotency::{Idempotency, Inbox, MemoryIdempotency, MessageOutcome, OnceError};

fn inboxes(names: [&str; 2]) -> [Inbox; 2] {
    let idempotency = Idempotency::new(Arc::new(MemoryIdempotency::new()));
    names.map(|name| Inbox::new(name, idempotency.clone()).unwrap())
}

/// CRD-4: a message is handled once by each consumer, a failed one is handled again, and one in flight is left alone.
#[tokio::test]
async fn crd_4_a_message_is_handled_once_by_each_consumer() {
    let [billing, mails] = inboxes(["billing", "mails"]);
    let failed = billing.handle("m-1", |_| async { Err::<u32, _>(io::Error::other("no")) }).await;
    assert!(matches!(failed, Err(OnceError::Failed { .. })));
    let handled = billing
        .handle("m-1", |_| async {
            let meanwhile = billing.handle("m-1", |_| async { Ok::<_, io::Error>(()) }).await;
            assert!(meanwhile.unwrap_err().retry_after().unwrap() > Duration::from_secs(20));
            Ok::<_, io::Error>(7)
        })
        .await;
    assert_eq!(handled.unwrap(), MessageOutcome::Done(7));
    let again = billing.handle("m-1", |_| async { Ok::<_, io::Error>(8) }).await;
    assert_eq!(again.unwrap(), MessageOutcome::Duplicate);
    let other = mails.handle("m-1", |_| async { Ok::<_, io::Error>(9) }).await;
    assert_eq!(other.unwrap(), MessageOutcome::Done(9));
    assert!(Inbox::new("a\nb", Idempotency::new(Arc::new(MemoryIdempotency::new()))).is_err());
}

/// CRD-4: whatever a producer uses as an id identifies its message.
#[tokio::test]
async fn crd_4_any_text_is_the_id_of_a_message() {
    let [inbox, _] = inboxes(["billing", "mails"]);
    let count = AtomicU32::new(0);
    let long = "x".repeat(5_000);
    let longer = "x".repeat(5_001);
    for id in ["\0", "a\nb", &long, &longer, "\0", "a\nb", &long, &longer] {
        let work = |_| async {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(())
        };
        inbox.handle(id, work).await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

/// CRD-4: messages without an id are not duplicates of each other: they are refused, with a word on what to do.
#[tokio::test]
async fn crd_4_a_message_without_an_id_is_refused() {
    let [inbox, _] = inboxes(["billing", "mails"]);
    for _ in 0..2 {
        let refused = inbox.handle("", |_| async { Ok::<_, io::Error>(()) }).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("is empty") && text.contains("payload"), "{text}");
        let fault = seawall::Fault::of_error(&refused);
        assert!(!fault.is_transient() && fault.did_run() == seawall::Ran::No, "{fault:?}");
    }
}
