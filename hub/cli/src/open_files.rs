//! The limit of open files: every connection is one.
//!
//! # Why not ask the system for the limit?
//! Where a sandbox forbids the question, as the unit for systemd does, its wrapper has no way to say so. The text below `/proc`
//! can be read or not.

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, setrlimit};

/// Raises the limit to the maximum that the system allows, and returns it; `None` if it is unknown. Usually the limit is 1024,
/// for the sake of programs that are older than this one by decades.
#[cfg(target_os = "linux")]
pub(crate) fn raise_limit() -> Option<u64> {
    let (now, most) = limits(&std::fs::read_to_string("/proc/self/limits").ok()?)?;
    if most.is_some_and(|most| most <= now) {
        return Some(now);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }) {
        Ok(()) => Some(most.unwrap_or(u64::MAX)),
        // It works with what it has.
        Err(_) => Some(now),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn raise_limit() -> Option<u64> {
    None
}

/// The soft limit, and the hard limit if there is one.
#[cfg(target_os = "linux")]
fn limits(text: &str) -> Option<(u64, Option<u64>)> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace();
    let now = words.next()?.parse().ok()?;
    match words.next()? {
        "unlimited" => Some((now, None)),
        most => Some((now, Some(most.parse().ok()?))),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// HUB-9: the limits are read as the system writes them.
    #[test]
    fn hub_9_limits_are_read_as_they_are_written() {
        let text = |line: &str| format!("Limit   Soft   Hard   Units\nMax processes 1 2 processes\n{line}\n");
        let line = "Max open files            1024                 524288               files     ";
        assert_eq!(limits(&text(line)), Some((1_024, Some(524_288))));
        assert_eq!(limits(&text("Max open files 1024 unlimited files")), Some((1_024, None)));
        assert_eq!(limits(&text("Max open files unlimited unlimited files")), None);
        assert_eq!(limits(&text("Max locked memory 1 2 bytes")), None);
    }
}
