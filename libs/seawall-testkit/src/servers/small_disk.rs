//! A file system in memory that is small enough to be filled.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::ServerError;

/// The name of the file system in the folder of a server.
pub(crate) const SMALL_DISK: &str = "disk";

/// The file that takes the room.
const BALLAST: &str = "ballast";

/// A file system for as long as it is mounted.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(folder: &Path, megabytes: u32) -> Result<Self, ServerError> {
        let at = folder.join(SMALL_DISK);
        fs::create_dir(&at)?;
        let size = format!("size={megabytes}m");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output()?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(ServerError::Failed {
                action: "mounting a small disk (which needs root)".into(),
                output,
            });
        }
        Ok(SmallDisk { at })
    }

    /// Takes all the room that is left, down to the last block.
    pub(crate) fn fill(&self) -> Result<(), ServerError> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.at.join(BALLAST))?;
        for size in [1 << 20, 1 << 16, 1 << 12, 1 << 9, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Ok(())
    }

    pub(crate) fn free(&self) -> Result<(), ServerError> {
        match fs::remove_file(self.at.join(BALLAST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Somebody may still have a file open in it; the mount goes when they do.
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(std::process::Stdio::null()).status();
    }
}
