//! RabbitMQ, one node.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use super::control::{Launch, ServerControl};
use super::program::{ServerError, find_program, free_port, started};

/// A RabbitMQ server of the test's own. It starts within about ten seconds, and keeps durable data over a restart.
#[derive(Debug)]
pub struct RabbitMq {
    control: ServerControl,
    ports: Ports,
    tool: PathBuf,
}

/// The ports of the node: for clients, for other nodes and its tools, and for the port mapper of Erlang.
#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    node: u16,
    mapper: u16,
}

/// Runs the port mapper and the server, and ends both when it is told to. `setpriv` ends them with this shell, however it ends.
const RUN: &str = r#"
user=$1
run() { if [ -n "$user" ]; then set -- --reuid="$user" --regid="$user" --init-groups -- "$@"; else set -- -- "$@"; fi
        exec setpriv --pdeathsig KILL "$@"; }
(run epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1) & mapper=$!
(run "$2") & server=$!
trap 'kill -TERM $server' TERM
while kill -0 $server 2>/dev/null; do wait $server; done
kill $mapper
wait $mapper
"#;

impl RabbitMq {
    /// Starts a server and waits until it answers.
    pub fn start() -> Result<RabbitMq, ServerError> {
        let server = find_program("rabbitmq-server", "rabbitmq-server")?;
        let tool = find_program("rabbitmqctl", "rabbitmq-server")?;
        let ports = Ports { client: free_port()?, node: free_port()?, mapper: free_port()? };
        let user = if runs_as_root()? { "rabbitmq" } else { "" };
        // The script on the path changes the user and ignores settings of the environment.
        let server = real_script(&server, "rabbitmq-server");
        let launch = Launch {
            name: "rabbitmq",
            command: Box::new(move |folder| {
                let mut command = Command::new("sh");
                command.args(["-c", RUN, "sh", user]).arg(&server);
                set_environment(&mut command, folder, ports);
                command
            }),
            stop_signal: "TERM",
            ready: Box::new(move |_| answers(ports.client)),
        };
        let control = ServerControl::launch(launch, |folder| prepare(folder, user))?;
        Ok(RabbitMq { control, ports, tool: real_script(&tool, "rabbitmqctl") })
    }

    /// The server that all tests of a process share, each with its own queues. Tests that stop or pause a server start their
    /// own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static RabbitMq {
        static SHARED: LazyLock<RabbitMq> = LazyLock::new(|| started(RabbitMq::start));
        &SHARED
    }

    /// The address as clients want it: `amqp://guest:guest@127.0.0.1:5672/%2f`.
    #[must_use]
    pub fn url(&self) -> String {
        RabbitMq::url_through(self.address())
    }

    /// The address of a server through a [proxy](super::FaultProxy) in front of it.
    #[must_use]
    pub fn url_through(proxy: SocketAddr) -> String {
        format!("amqp://guest:guest@{proxy}/%2f")
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.client))
    }

    /// Stops, kills, pauses and starts the server.
    #[must_use]
    pub fn control(&self) -> &ServerControl {
        &self.control
    }

    /// Runs `rabbitmqctl` with these arguments and returns what it prints. It takes a second or two.
    pub fn tool(&self, arguments: &[&str]) -> Result<String, ServerError> {
        let folder = self.control.folder();
        let mut command = Command::new("sh");
        command.args(["-c", r#"cd "$HOME" && exec "$@""#, "sh"]);
        if runs_as_root()? {
            command.args(["setpriv", "--reuid=rabbitmq", "--regid=rabbitmq", "--init-groups", "--"]);
        }
        command.arg(&self.tool).arg("-q").args(arguments);
        set_environment(&mut command, &folder, self.ports);
        let output = command.output()?;
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        if output.status.success() {
            Ok(text)
        } else {
            Err(ServerError::Failed { action: format!("rabbitmqctl {}", arguments.join(" ")), output: text })
        }
    }
}

/// Everything of the node lies in its folder, and it listens on the loopback address only.
fn set_environment(command: &mut Command, folder: &Path, ports: Ports) {
    let path = |name: &str| folder.join(name);
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env("RABBITMQ_NODENAME", format!("seawall{}@localhost", ports.client))
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", ports.client.to_string())
        .env("RABBITMQ_DIST_PORT", ports.node.to_string())
        .env("RABBITMQ_MNESIA_BASE", path("data"))
        .env("RABBITMQ_LOG_BASE", path("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_PID_FILE", path("server.pid"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
        .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
        .env("RABBITMQ_CONF_ENV_FILE", path("environment"))
        .env("ERL_EPMD_PORT", ports.mapper.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none",
        )
        // The script then becomes the server instead of waiting for it, so that the signals for the one reach the other.
        .env("detached", "yes");
}

/// Writes the settings. The server refuses to run as root where Debian installed it, so its own user owns the folder then.
fn prepare(folder: &Path, user: &str) -> Result<(), ServerError> {
    fs::write(folder.join("plugins"), "[].\n")?;
    fs::write(folder.join("environment"), "")?;
    // A machine for tests may have little room on its disk and in memory, and a server that is short of either blocks publishers.
    let settings = "disk_free_limit.absolute = 1MB\nvm_memory_high_watermark.absolute = 2GB\nlog.console.level = warning\n";
    fs::write(folder.join("rabbitmq.conf"), settings)?;
    if !user.is_empty() {
        let status = Command::new("chown").arg("-R").arg(user).arg(folder).status()?;
        if !status.success() {
            return Err(ServerError::Failed {
                action: format!("giving the folder to the user `{user}`"),
                output: status.to_string(),
            });
        }
    }
    Ok(())
}

/// What Debian has on the path is a wrapper that runs as its own user with its own environment; this is what it wraps.
fn real_script(found: &Path, name: &str) -> PathBuf {
    let wrapped = Path::new("/usr/lib/rabbitmq/bin").join(name);
    if wrapped.is_file() { wrapped } else { found.to_path_buf() }
}

fn runs_as_root() -> Result<bool, ServerError> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

/// Whether the server begins the handshake of AMQP 0-9-1.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let patience = Duration::from_secs(1);
    let greet = || {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(b"AMQP\0\0\x09\x01")?;
        let mut answer = [0; 1];
        stream.read_exact(&mut answer)?;
        std::io::Result::Ok(answer == [1])
    };
    greet().unwrap_or(false)
}
