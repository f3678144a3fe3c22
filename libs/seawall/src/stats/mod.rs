//! Counting what happened lately, without a lock and without slowing the success path.
//!
//! - [`Ring`]: the outcomes of the last `n` calls. A success into a window full of successes writes nothing.
//! - [`Slices`] and [`Stripes`]: how often something happened in the last while, in slices of time. Stripes are
//!   one such count per thread, because a single one that all threads write gets slower with every thread.
//! - [`Spent`]: what was taken in the last while, with one word that decides, so that two takers never both get
//!   the last piece.

mod ring;
mod slices;
mod spent;

pub(crate) use crate::chance::mix as spread;
pub use ring::Tally;
pub(crate) use ring::{Mark, RING_MAX, Ring};
pub(crate) use slices::{Slices, Slicing, Stripes, stripes, thread_number};
pub(crate) use spent::Spent;
