//! Large files through little memory.

use seawall_files::{FileBody, FileStorage, LargeFiles, S3Account, Spool};
use seawall_testkit::servers::{SeaweedS3, WorkerProcess, worker_settings};
use tokio::io::AsyncReadExt;

use crate::common::files;

const FILE_BYTES: u64 = 64 << 20;

/// The highest memory that this process has had, in kB, as the kernel counts it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Uploads a file and downloads it again, and says how much memory that took.
#[test]
fn memory_worker() {
    let Some(settings) = worker_settings() else { return };
    let (key, secret) = SeaweedS3::WRITER;
    let account = S3Account::new("memory").endpoint(&settings["URL"]).credentials(key, secret);
    let store = files("S3").part_bytes(5 << 20).s3(&account).unwrap();
    let mut storage = FileStorage::builder("S3-Adapter", store).extensions(["bin"]).bytes_max(FILE_BYTES);
    storage = match settings["WAY"].as_str() {
        "stage" => storage.spool(Spool::builder(&settings["FOLDER"]).build().unwrap()),
        _ => storage.large_files(LargeFiles::Stream),
    };
    let storage = storage.buffer_bytes(5 << 20).build().unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        storage.upload_file("small.bin", None, "x").await.unwrap();
        let before = peak_memory();
        let source = tokio::io::repeat(7).take(FILE_BYTES);
        let stored =
            storage.upload_file("large.bin", Some(FILE_BYTES), FileBody::from_reader(source)).await.unwrap();
        let uploaded = peak_memory();
        let content = storage.download_file(&stored.id).await.unwrap();
        let count = content.body.write_to(tokio::io::sink()).await.unwrap();
        assert_eq!(count, FILE_BYTES);
        println!("memory {} {}", uploaded - before, peak_memory() - uploaded);
    });
}

/// ADP-8: 64 MiB go up and down through a process that needs less than half of that: two parts of 5 MiB on their way, one that is
/// read, and what the client and the allocator keep.
#[test]
fn adp_8_a_large_file_needs_little_memory() {
    let server = SeaweedS3::shared();
    for way in ["stream", "stage"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let settings = [("URL", &*server.url()), ("WAY", way), ("FOLDER", path)];
        let mut worker = WorkerProcess::spawn("memory::memory_worker", &settings).unwrap();
        let (up, down) = loop {
            let line = worker.read_line().unwrap().expect("the worker says how much it took");
            let Some((_, figures)) = line.split_once("memory ") else { continue };
            let Some((up, down)) = figures.split_once(' ') else { continue };
            break (up.parse::<u64>().unwrap(), down.parse::<u64>().unwrap());
        };
        assert!(worker.wait().unwrap());
        println!("{way}: {up} kB for the upload, {down} kB more for the download");
        assert!(up < 32_768 && down < 16_384, "{way}: {up} kB and {down} kB");
    }
}
