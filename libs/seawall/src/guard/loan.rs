//! What a call lends to its attempts, one after the other.
//!
//! # Why not a closure that borrows?
//! The future of an async closure that borrows what it captures can't be shown to be `Send` by today's compiler, so such a call
//! would fit into no task of a multi-threaded runtime. A loan is a value: it goes into the attempt's future and comes back when
//! that ends or is dropped.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Something of the caller's that an attempt may use until it ends: a connection, a transaction. Made by
/// [`CallBuilder::call_on`](crate::CallBuilder::call_on); it dereferences to what is lent.
pub struct Loan<'c, C: ?Sized> {
    lent: Option<&'c mut C>,
    home: Arc<Mutex<Option<&'c mut C>>>,
}

/// What lends.
pub(super) struct Lender<'c, C: ?Sized>(Arc<Mutex<Option<&'c mut C>>>);

impl<'c, C: ?Sized> Lender<'c, C> {
    pub(super) fn new(context: &'c mut C) -> Self {
        Lender(Arc::new(Mutex::new(Some(context))))
    }

    /// Attempts come one after the other, so it is there unless an attempt has hidden its loan somewhere.
    pub(super) fn lend(&self) -> Loan<'c, C> {
        let lent = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert!(
            lent.is_some(),
            "an attempt has ended and kept what it was lent; let the loan go with the attempt"
        );
        Loan { lent, home: self.0.clone() }
    }
}

impl<C: ?Sized> Deref for Loan<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.lent.as_deref().expect("it is lent until it is dropped")
    }
}

impl<C: ?Sized> DerefMut for Loan<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.lent.as_deref_mut().expect("it is lent until it is dropped")
    }
}

impl<C: ?Sized> Drop for Loan<'_, C> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.lent.take();
    }
}

impl<C: fmt::Debug + ?Sized> fmt::Debug for Loan<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
