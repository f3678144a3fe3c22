//! The HTTP clients that people have, judged without being told how.
#![doc = ""]
#![doc = include_str!("../../docs/clients.md")]

#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "reqwest")]
mod reqwest;
mod status;

pub use status::{ByStatus, HttpResponse, StatusRules};

use std::error::Error as StdError;
use std::io;

use crate::fault::{Fault, Ran};

/// What an error of a client means, if it is one of a client that we know.
///
/// The chain walk of the default classifier asks for each error of the chain, from outside in.
pub(crate) fn known(error: &(dyn StdError + 'static)) -> Option<Fault> {
    if error.is::<http::Error>() {
        // A URI, a method or a header that can't be written.
        return Some(Fault::business().ran(Ran::No));
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref() {
        return Some(reqwest::judge(error));
    }
    #[cfg(feature = "hyper-util")]
    if let Some(error) = error.downcast_ref() {
        return Some(hyper::judge_pool(error));
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref() {
        return Some(hyper::judge(error));
    }
    // A body that is read as a stream of bytes wraps the client's error.
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    chain(inner).find_map(known)
}

/// An error and its causes, from outside in.
fn chain<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    // A chain that never ends is a bug of its author, and must not be ours.
    std::iter::successors(Some(error), |error| cause(*error)).take(64)
}

/// The next cause. An I/O error shows what it carries, which its own `source` leaves out.
fn cause<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(carried) => Some(carried),
        None => error.source(),
    }
}

/// The first error of this type in the chain.
#[cfg(feature = "hyper")]
fn find<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    chain(error).find_map(|error| error.downcast_ref())
}
