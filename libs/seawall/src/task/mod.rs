//! Concurrency inside one process: work that callers share, pools of workers, groups of tasks, an orderly end.
//!
//! | you have | you want | take |
//! |---|---|---|
