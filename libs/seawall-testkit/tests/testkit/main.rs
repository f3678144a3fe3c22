//! Tests of the launcher of servers.

mod servers;
