//! Apache Kafka: one node in KRaft mode, broker and controller in one process.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use super::control::{Launch, ServerControl};
use super::fetched::{FetchedProgram, fetch_jars};
use super::program::{ServerError, find_program, free_port, started};

/// The user that the listener with authentication knows.
const USER: &str = "seawall";

/// The password of that user.
const PASSWORD: &str = "seawall-secret";

/// Options of the Java virtual machine: little memory, and a fast start instead of the best speed later.
const JAVA_OPTIONS: [&str; 4] = ["-Xmx384m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// The id of the cluster, which is always the same: no two of these servers ever talk to each other.
const CLUSTER: &str = "c2Vhd2FsbC10ZXN0a2l0MA";

/// The version runs on Java 17.
const KAFKA: FetchedProgram = FetchedProgram {
    name: "org.apache.kafka:kafka_2.13",
    version: "4.3.1",
    file: "jars/kafka_2.13-4.3.1.jar",
    fetch: fetch_jars,
};

/// A Kafka server of the test's own, with two listeners: one that lets everybody in and one that wants a password.
#[derive(Debug)]
pub struct Kafka {
    control: ServerControl,
    ports: Ports,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    open: u16,
    authenticated: u16,
    controller: u16,
}

impl Kafka {
    /// Starts a server with Kafka's own defaults: it creates a topic for any client that asks for one that does not exist.
    pub fn start() -> Result<Kafka, ServerError> {
        Kafka::builder().start()
    }

    /// Chooses how the server is started.
    #[must_use]
    pub fn builder() -> KafkaBuilder {
        KafkaBuilder { settings: Vec::new() }
    }

    /// The server that all tests of a process share, each with its own topics. Tests that stop or pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static Kafka {
        static SHARED: LazyLock<Kafka> = LazyLock::new(|| started(Kafka::start));
        &SHARED
    }

    /// The address as clients want it: `127.0.0.1:9092`.
    #[must_use]
    pub fn bootstrap_servers(&self) -> String {
        self.address().to_string()
    }

    /// The address of the listener that wants [a user and a password](Self::credentials) (SASL PLAIN without TLS).
    #[must_use]
    pub fn authenticated_servers(&self) -> String {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.authenticated)).to_string()
    }

    /// The user and the password that the listener with authentication accepts.
    #[must_use]
    pub fn credentials(&self) -> (&'static str, &'static str) {
        (USER, PASSWORD)
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.open))
    }

    /// Stops, kills, pauses and starts the server.
    #[must_use]
    pub fn control(&self) -> &ServerControl {
        &self.control
    }
}

/// Chooses how a [`Kafka`] is started.
#[derive(Clone, Debug)]
pub struct KafkaBuilder {
    settings: Vec<String>,
}

impl KafkaBuilder {
    /// Adds a line of `server.properties`: `message.max.bytes=2097152`.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Fetches Kafka if this machine has never run it, starts the server and waits until it answers.
    pub fn start(self) -> Result<Kafka, ServerError> {
        let java = find_program("java", "openjdk-17-jre-headless")?;
        let jar = KAFKA.path()?;
        let jars = jar.parent().expect("a jar lies in a folder").to_owned();
        let ports = Ports::free()?;
        let (program, path) = (java.clone(), jars.clone());
        let launch = Launch {
            name: "kafka",
            command: Box::new(move |folder| {
                let mut command = java_command(&program, &path, folder);
                command.arg("kafka.Kafka").arg(folder.join("server.properties"));
                command
            }),
            stop_signal: "TERM",
            ready: Box::new(move |_| answers(ports.open)),
        };
        let prepare = |folder: &Path| self.prepare(folder, &java, &jars, ports);
        Ok(Kafka { control: ServerControl::launch(launch, prepare)?, ports })
    }

    /// Writes the settings and formats the storage.
    fn prepare(&self, folder: &Path, java: &Path, jars: &Path, ports: Ports) -> Result<(), ServerError> {
        let file = folder.join("server.properties");
        fs::write(&file, self.properties(folder, ports))?;
        let mut format = java_command(java, jars, folder);
        format.args(["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config"]).arg(&file);
        let output = format.output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        Err(ServerError::Failed { action: "formatting the storage of kafka".to_owned(), output: text })
    }

    fn properties(&self, folder: &Path, ports: Ports) -> String {
        let Ports { open, authenticated, controller } = ports;
        let data = folder.join("data");
        let login = "org.apache.kafka.common.security.plain.PlainLoginModule";
        let mut text = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=OPEN://127.0.0.1:{open},PASSWORD://127.0.0.1:{authenticated},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=OPEN://127.0.0.1:{open},PASSWORD://127.0.0.1:{authenticated}\n\
             listener.security.protocol.map=OPEN:PLAINTEXT,PASSWORD:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=OPEN\n\
             controller.listener.names=CONTROLLER\n\
             sasl.enabled.mechanisms=PLAIN\n\
             listener.name.password.plain.sasl.jaas.config={login} required user_{USER}=\"{PASSWORD}\";\n\
             log.dirs={}\n\
             offsets.topic.replication.factor=1\n\
             offsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             share.coordinator.state.topic.replication.factor=1\n\
             share.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n\
             group.min.session.timeout.ms=1000\n",
            data.display(),
        );
        for line in &self.settings {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

impl Ports {
    fn free() -> Result<Ports, ServerError> {
        loop {
            let (open, authenticated, controller) = (free_port()?, free_port()?, free_port()?);
            if open != authenticated && open != controller && authenticated != controller {
                return Ok(Ports { open, authenticated, controller });
            }
        }
    }
}

/// Java with all jars of Kafka on its path, in the folder of the server.
fn java_command(java: &Path, jars: &Path, folder: &Path) -> Command {
    let mut command = Command::new(java);
    command.current_dir(folder).args(JAVA_OPTIONS).arg("-cp").arg(class_path(jars));
    command
}

fn class_path(jars: &Path) -> PathBuf {
    jars.join("*")
}

/// Whether the server answers a request for the versions of its protocol. The port is open some time before it does.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let patience = Duration::from_secs(1);
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        // Size, the key of ApiVersions, its version 0, a number that the answer repeats, no client id.
        stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff])?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer)?;
        std::io::Result::Ok(answer[4..] == [0, 0, 0, 7])
    };
    ask().unwrap_or(false)
}
