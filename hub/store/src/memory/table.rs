//! A table: rows by key, copied when somebody changes them while an earlier version is in use.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows by key. A clone costs nothing; the first change of a clone copies the list of rows, and each changed row.
#[derive(Debug)]
pub(super) struct CowTable<K, V>(Arc<BTreeMap<K, Arc<V>>>);

impl<K: Ord + Clone, V: Clone> CowTable<K, V> {
    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(AsRef::as_ref)
    }

    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        // A row that is not there must not cost a copy of the table.
        self.0.contains_key(key).then(|| Arc::make_mut(&mut self.0).get_mut(key).map(Arc::make_mut)).flatten()
    }

    pub(super) fn insert(&mut self, key: K, row: impl Into<Arc<V>>) {
        Arc::make_mut(&mut self.0).insert(key, row.into());
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.0.contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.0).remove(key).map(Arc::unwrap_or_clone)
    }

    /// Returns all rows in the order of their keys.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, row)| (key, row.as_ref()))
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.values().map(AsRef::as_ref)
    }

    /// Returns the keys of the rows that match, in order.
    pub(super) fn keys_of(&self, mut matches: impl FnMut(&K, &V) -> bool) -> Vec<K> {
        self.iter().filter(|(key, row)| matches(key, row)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns the highest key.
    pub(super) fn last_key(&self) -> Option<&K> {
        self.0.keys().next_back()
    }
}

impl<K, V> Clone for CowTable<K, V> {
    fn clone(&self) -> Self {
        CowTable(self.0.clone())
    }
}

impl<K, V> Default for CowTable<K, V> {
    fn default() -> Self {
        CowTable(Arc::default())
    }
}
