//! One call with all its attempts: the shell around the machine.

mod attempt;
mod record;
mod response;
mod run;

pub(crate) use record::{CallRecord, Method};
pub(crate) use run::run;
