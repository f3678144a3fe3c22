//! What a test sees of a library from outside: its log lines and the values of its metrics.

mod lines;
mod numbers;

pub use lines::Lines;
pub use numbers::Numbers;
