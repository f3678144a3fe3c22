//! What was given up.
