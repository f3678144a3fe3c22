//! The hub's API, as far as a measurement needs it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::process::KEY;
use super::wire::Connection;

/// Whoever sets up a hub.
pub struct Api {
    connection: Connection,
}

impl Api {
    pub async fn open(address: SocketAddr) -> Result<Self, String> {
        let connection = Connection::open(address).await;
        Ok(Api { connection: connection.map_err(|error| format!("the hub is not there: {error}"))? })
    }

    /// Registers a service with the policy that every service gets, or changes it.
    pub async fn service(&mut self, name: &str, at: SocketAddr, paused: bool) -> Result<(), String> {
        let service = json!({"name": name, "address": format!("http://{at}"), "paused": paused});
        self.post("/api/v1/registry/services", &service).await
    }

    /// Registers a service that may be called so often at once; the rest of its policy is what every service gets.
    pub async fn service_with_calls(&mut self, name: &str, at: SocketAddr, calls: u32) -> Result<(), String> {
        let policy = json!({
            "attempt_timeout": "3s", "retry": {"max_attempts": 3},
            "breaker": {"consecutive_failures": 5, "cooldown": "30s"}, "bulkhead": {"max_calls": calls},
        });
        let service = json!({"name": name, "address": format!("http://{at}"), "policy": policy});
        self.post("/api/v1/registry/services", &service).await
    }

    /// Registers a service with the policy that every service gets, but for room for many calls.
    pub async fn service_with_retries(&mut self, name: &str, at: SocketAddr) -> Result<(), String> {
        let policy = json!({
            "attempt_timeout": "3s", "retry": {"max_attempts": 3}, "bulkhead": {"max_calls": 1000},
            "breaker": {"consecutive_failures": 5, "cooldown": "30s"},
        });
        let service = json!({"name": name, "address": format!("http://{at}"), "policy": policy});
        self.post("/api/v1/registry/services", &service).await
    }

    /// Lets a paused service go on.
    pub async fn resume(&mut self, name: &str, at: SocketAddr) -> Result<(), String> {
        self.service(name, at, false).await
    }

    /// A rule that sends events of a type on as they came.
    pub async fn rule(&mut self, name: &str, kind: &str, service: &str) -> Result<(), String> {
        self.rule_with(name, kind, service, json!({"path": "/hook"})).await
    }

    /// A rule with something more in it.
    pub async fn rule_with(
        &mut self,
        name: &str,
        kind: &str,
        service: &str,
        more: Value,
    ) -> Result<(), String> {
        let mut rule = json!({"name": name, "eventType": kind, "service": service});
        if let (Value::Object(rule), Value::Object(more)) = (&mut rule, more) {
            rule.extend(more);
        }
        self.post("/api/v1/registry/rules", &rule).await
    }

    /// Logs in to the dashboard; the cookie of the session.
    pub async fn log_in(&mut self) -> Result<String, String> {
        let form = format!("key={KEY}&to=/");
        let request = format!(
            "POST /login HTTP/1.1\r\nhost: hub\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let status = self.connection.exchange(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let head = String::from_utf8_lossy(self.connection.head()).into_owned();
        let cookie = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("set-cookie").then(|| value.trim().split(';').next())?
        });
        cookie.map(ToOwned::to_owned).ok_or(format!("the login was answered with {status}: {head}"))
    }

    /// A page of the dashboard; how many bytes it has.
    pub async fn page(&mut self, path: &str, cookie: &str) -> Result<usize, String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\ncookie: {cookie}\r\n\r\n");
        match self.connection.exchange(request.as_bytes()).await {
            Ok(200) => Ok(self.connection.body().len()),
            Ok(status) => Err(format!("{path} was answered with {status}")),
            Err(error) => Err(format!("{path} was not answered: {error}")),
        }
    }

    /// What the hub answers to this.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value, String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let status = self.connection.exchange(request.as_bytes()).await;
        let answer = self.connection.body();
        match status {
            Ok(200..=202) => serde_json::from_slice(answer).map_err(|error| format!("{path}: {error}")),
            Ok(status) => Err(format!(
                "{method} {path} of {body} was answered with {status}: {}",
                String::from_utf8_lossy(answer)
            )),
            Err(error) => Err(format!("{method} {path} was not answered: {error}")),
        }
    }

    async fn post(&mut self, path: &str, body: &Value) -> Result<(), String> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        match self.connection.exchange(request.as_bytes()).await {
            Ok(200 | 201) => Ok(()),
            Ok(status) => {
                let answer = String::from_utf8_lossy(self.connection.body());
                Err(format!("POST {path} of {body} was answered with {status}: {answer}"))
            }
            Err(error) => Err(format!("POST {path} was not answered: {error}")),
        }
    }
}
