//! A Kafka for the benchmark: that of the caller, or one from the jars that the tests have fetched.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Failure;

pub(crate) struct Server {
    pub(crate) address: String,
    process: Option<(Child, PathBuf)>,
}

impl Server {
    pub(crate) fn find_or_start() -> Result<Server, Failure> {
        if let Ok(address) = std::env::var("KAFKA") {
            return Ok(Server { address, process: None });
        }
        let home = std::env::var("XDG_CACHE_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cache"))?;
        let cache = PathBuf::from(home).join("seawall-testkit");
        let mut found = fs::read_dir(&cache).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_kafka = |path: &PathBuf| path.join("scala-library.jar").exists() || {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kafka-")) && path.is_dir()
        };
        let jars = found.find(is_kafka).ok_or("no Kafka: run `cargo test -p seawall-kafka` once, which fetches it, or set KAFKA=host:port")?;
        Server::start(&jars.join("*").display().to_string())
    }

    fn start(class_path: &str) -> Result<Server, Failure> {
        let folder = std::env::temp_dir().join(format!("seawall-bench-kafka-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let ports = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let [open, controller] = [ports[0].local_addr()?, ports[1].local_addr()?];
        drop(ports);
        let file = folder.join("server.properties");
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@{controller}\n\
             listeners=PLAINTEXT://{open},CONTROLLER://{controller}\nadvertised.listeners=PLAINTEXT://{open}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\noffsets.topic.replication.factor=1\n\
             offsets.topic.num.partitions=1\ngroup.initial.rebalance.delay.ms=0\n",
            folder.join("data").display()
        );
        fs::write(&file, properties)?;
        let java = || {
            let mut command = Command::new("java");
            command.args(["-Xmx1g", "-cp", class_path]).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut format = java();
        format.args(["kafka.tools.StorageTool", "format", "--cluster-id", "c2Vhd2FsbC1iZW5jaC0wMA", "--config"]);
        if !format.arg(&file).status()?.success() {
            return Err("the storage of Kafka could not be formatted".into());
        }
        let process = java().arg("kafka.Kafka").arg(&file).spawn()?;
        let server = Server { address: open.to_string(), process: Some((process, folder)) };
        let begin = Instant::now();
        while TcpStream::connect(open).is_err() {
            if begin.elapsed() > Duration::from_secs(60) {
                return Err("Kafka did not start within a minute".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((process, folder)) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
            let _ = fs::remove_dir_all(folder);
        }
    }
}
