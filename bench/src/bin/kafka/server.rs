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
        let home = |cache| std::env::var("HOME").map(|home| home + cache);
        let cache = std::env::var("XDG_CACHE_HOME").or_else(|_| home("/.cache"))?;
        let servers =
            fs::read_dir(PathBuf::from(cache).join("seawall/servers")).into_iter().flatten().flatten();
        // The launcher of the tests keeps them in a folder with the name and the version of the package.
        let is_kafka = |path: &PathBuf| path.to_string_lossy().contains("org.apache.kafka-kafka_2.13-");
        let mut jars = servers.map(|entry| entry.path()).filter(is_kafka).map(|path| path.join("jars"));
        let jars = jars.find(|jars| jars.is_dir()).ok_or(
            "no Kafka: run `cargo test -p seawall-kafka` once, which fetches it, or set KAFKA=host:port",
        )?;
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
            command
                .args(["-Xmx1g", "-cp", class_path])
                .current_dir(&folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let mut format = java();
        format.args([
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            "c2Vhd2FsbC1iZW5jaC0wMA",
            "--config",
        ]);
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
