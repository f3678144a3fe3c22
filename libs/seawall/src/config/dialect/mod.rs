//! Files that were written for something else, read with the meaning that they had there.

pub(super) mod flat;
pub(super) mod resilience4j;
pub(super) mod spring;
