use seawall_dist::lock::{LockError, LockKey, Locks, MemoryLocks};
use std::sync::Arc;

/// CRD-1: a key is `lock:` and at least three segments, and an error says what is wrong and shows a key that is right.
#[test]
fn crd_1_keys_have_a_form_and_errors_show_it() {
    for right in ["lock:transaction:user:123", "lock:order:create:buyer:456", "lock:inventory:sku:ABC-001"] {
        assert_eq!(LockKey::new(right).unwrap().as_str(), right);
    }
    for (wrong, reason) in [
        ("", "does not begin with `lock:`"),
        ("transaction:user:123", "does not begin with `lock:`"),
        ("Lock:transaction:user:123", "does not begin with `lock:`"),
        ("lock:user:123", "has 2 of at least 3 segments after `lock:`"),
        ("lock:", "has an empty segment"),
        ("lock:transaction:user:", "has an empty segment"),
        ("lock::transaction:user:1", "has an empty segment"),
        ("lock:transaction:user:a b", "contains a blank or a control character"),
        ("lock:transaction:user:a\nb", "contains a blank or a control character"),
    ] {
        let text = LockKey::new(wrong).unwrap_err().to_string();
        assert!(text.contains(reason), "{wrong:?}: {text}");
        assert!(text.contains("`lock:transaction:user:123`") && !text.contains('\n'), "{text}");
    }
    let long = format!("lock:a:b:{}", "c".repeat(600));
    let text = LockKey::new(&long).unwrap_err().to_string();
    assert!(text.contains("is longer than 512 bytes") && text.len() < 250, "{text}");
}

/// CRD-1: a key that is wrong runs nothing, and neither does a user that would break out of its segment.
#[tokio::test]
async fn crd_1_a_wrong_key_runs_nothing() {
    let locks = Locks::new(Arc::new(MemoryLocks::new()));
    let error = locks.with_lock("orders", |_| async { panic!("it ran") }).await.unwrap_err();
    assert!(matches!(error, LockError::Key(_)), "{error}");
    assert!(!error.fault().is_transient());
    let error = locks.with_user_transaction("", |_| async { panic!("it ran") }).await.unwrap_err();
    assert!(matches!(error, LockError::Key(_)), "{error}");
    let key = locks.with_user_transaction(123, |lease| async move { lease.key().to_string() }).await.unwrap();
    assert_eq!(key, "lock:transaction:user:123");
}
