//! The store on PostgreSQL when its server is killed, stalls, or is replaced, and when another hub wants the same database.

mod commits;
mod nodes;
mod opening;
mod outages;
mod place;
mod tls;
