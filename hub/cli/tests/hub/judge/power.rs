//! A disk whose power is cut.
//!
//! # How a power cut is played
//! The data folder lies on an ext4 file system in a file, mounted by a loop device. What a process writes stays in the page
//! cache of that file system; only what is written back, because somebody asked by `fsync` or because time has passed, goes
//! through the loop device into the file. So the file is what the disk has, and a copy of it, taken while the hub stands
//! still, is what a power cut would have left: read through the cache of the file system *below*, which sees all that the
//! loop device has written, and nothing of what it has not. (Direct I/O of the loop device would change nothing of it.)
//! A copy during which the loop device wrote is not one moment, and is taken again.
//!
//! The hub then goes on from the copy, mounted as a disk is mounted after a power cut: ext4 replays its journal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use tempfile::TempDir;

use super::trial::Ground;

pub(crate) struct Disk {
    folder: TempDir,
    number: u32,
    mounted: Option<Mounted>,
}

impl Disk {
    pub(crate) fn new(megabytes: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let image = folder.path().join("disk-0");
        fs::File::create(&image).unwrap().set_len(megabytes * 1024 * 1024).unwrap();
        need("mkfs.ext4", Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image));
        let mounted = Mounted::new(&image, &folder.path().join("mount-0"));
        Disk { folder, number: 0, mounted: Some(mounted) }
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.mounted().at.clone()
    }

    fn mounted(&self) -> &Mounted {
        self.mounted.as_ref().expect("there is always one")
    }

    /// What is on the disk, and nothing that only the system knows of, is what there is from now on. Nobody may write.
    pub(crate) fn cut(&mut self) {
        self.copy();
        self.go_on_from_copy();
    }

    fn next(&self, what: &str) -> PathBuf {
        self.folder.path().join(format!("{what}-{}", self.number + 1))
    }

    fn copy(&self) {
        let (before, copy) = (self.mounted(), self.next("disk"));
        loop {
            let writes = before.writes();
            fs::copy(&before.image, &copy).unwrap();
            if writes == before.writes() {
                return;
            }
        }
    }

    fn go_on_from_copy(&mut self) {
        // What was in the cache goes into the old file now, and with it into nothing.
        drop(self.mounted.take());
        self.mounted = Some(Mounted::new(&self.next("disk"), &self.next("mount")));
        self.number += 1;
    }
}

impl Ground for Disk {
    fn folder(&self) -> PathBuf {
        self.root().join("data")
    }

    fn crash(&mut self, process: &mut Child) {
        let stopped = Command::new("kill").args(["-STOP", &process.id().to_string()]).status().unwrap();
        assert!(stopped.success(), "the hub can't be stopped");
        self.copy();
        process.kill().unwrap();
        process.wait().unwrap();
        self.go_on_from_copy();
    }
}

/// A file system in a file, for as long as it is mounted.
pub(crate) struct Mounted {
    image: PathBuf,
    pub(crate) at: PathBuf,
    /// Where the system counts what the loop device does.
    counts: PathBuf,
}

impl Mounted {
    fn new(image: &Path, at: &Path) -> Self {
        fs::create_dir(at).unwrap();
        need("mount", Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
        let device = need(
            "losetup",
            Command::new("losetup").args(["--noheadings", "--output", "NAME", "-j"]).arg(image),
        );
        let counts = Path::new("/sys/block").join(device.trim().trim_start_matches("/dev/")).join("stat");
        Mounted { image: image.to_owned(), at: at.to_owned(), counts }
    }

    /// A file system that is in memory only.
    pub(crate) fn in_memory(at: &Path, megabytes: u64) -> Self {
        fs::create_dir(at).unwrap();
        let size = format!("size={megabytes}m");
        need("mount", Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at));
        Mounted { image: PathBuf::new(), at: at.to_owned(), counts: PathBuf::new() }
    }

    /// How often and how much was written, and what is under way.
    fn writes(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.counts).unwrap();
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        [4, 6, 8, 11, 15].into_iter().filter_map(|column| words.get(column).cloned()).collect()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.at).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            // Somebody still has a file open in it; the mount goes when they do.
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
        let _ = fs::remove_file(&self.image);
    }
}

/// Runs what only root can, and says what is missing if it can't be run. A judge that can't judge does not acquit.
pub(crate) fn need(program: &str, command: &mut Command) -> String {
    let hint = "this judge cuts the power of a loop-mounted ext4 file system, or fills a small one: it needs root, \
                `mkfs.ext4`, `mount`, `umount`, `losetup` and a free loop device (in a container: --privileged)";
    let output = command.output().unwrap_or_else(|error| panic!("`{program}` can't be run: {error}; {hint}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{program}` failed: {said}; {hint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
